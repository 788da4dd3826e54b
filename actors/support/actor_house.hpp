// CAF's actor system, configured for this project and closed with a deadline.
//
// Owns: the system and its configuration. Promises: writes nothing to stdout or stderr, reads no arguments and no files;
// close() returns by its deadline even where an actor's thread hangs: the system is then left to a helper thread. Threads:
// limits::control_threads workers that share one queue, plus CAF's own timer.
#pragma once
#include <chrono>
#include <memory>

#include <caf/all.hpp>

namespace troupe {

class actor_house {
public:
  actor_house();

  caf::actor_system& system() noexcept { return system_; }

  // Precondition: the last handle outside has been dropped and every actor was told to end. false: something still runs.
  static bool close(std::unique_ptr<actor_house> house, std::chrono::steady_clock::time_point deadline);

private:
  struct quiet_config : caf::actor_system_config {
    quiet_config();
  };
  bool empty();

  quiet_config config_;
  caf::actor_system system_;
  std::size_t own_threads_; // detached ones that CAF itself runs
};

} // namespace troupe
