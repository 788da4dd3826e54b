// CAF's actor system, configured for this project and closed with a deadline.
//
// Owns: the system, its configuration, and the keeper: a sleeping thread that builds the system, spawns the first actor and
// destroys the system. (In CAF 0.17 a thread that does any of these keeps the system's logger until it ends, and the destructor
// waits for the logger; so one thread does all.) Promises: writes
// nothing to stdout or stderr, reads no arguments and no files; close() returns by its deadline even where an actor's thread
// hangs: keeper and system are then left behind. Threads: limits::control_threads workers that share one queue, CAF's timer
// and printer, the keeper.
#pragma once
#include <chrono>
#include <functional>
#include <future>
#include <memory>

#include <caf/all.hpp>

namespace troupe {

class actor_house {
public:
  // `start` runs on the keeper once the system stands. Throws what CAF, std::thread and start throw.
  explicit actor_house(std::function<void(caf::actor_system&)> start);
  ~actor_house(); // closes without waiting, if nobody did

  // Precondition: not closed before; the last handle outside has been dropped and every actor was told to end. false: something
  // still runs.
  bool close(std::chrono::steady_clock::time_point deadline);

private:
  bool closing_ = false;
  std::promise<void> close_;
  std::future<void> closed_;
};

} // namespace troupe
