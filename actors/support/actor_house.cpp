#include "actors/support/actor_house.hpp"

#include <thread>

#include "config/limits.hpp"

namespace troupe {

namespace {

struct quiet_config : caf::actor_system_config {
  quiet_config() {
    // One shared queue: its workers sleep on a condition variable, where the default policy polls.
    set("scheduler.policy", caf::atom("sharing"));
    set("scheduler.max-threads", static_cast<std::size_t>(limits::control_threads));
    set("logger.console", caf::atom("none"));
    set("logger.file-verbosity", caf::atom("quiet"));
  }
};

void keep(const std::function<void(caf::actor_system&)>& start, std::promise<void> started, std::future<void> close,
          std::promise<void> closed) {
  try {
    quiet_config config;
    {
      caf::actor_system system(config);
      system.await_actors_before_shutdown(false);        // done below
      const auto own_threads = system.detached_actors(); // that CAF runs for itself
      start(system);
      started.set_value();
      close.wait();
      // Destroying the system while a detached actor's thread still leaves it is a race in CAF 0.17 (its issue 1196); so this
      // looks until they have left, for which CAF offers no waiting.
      while (system.registry().running() > 0 || system.detached_actors() > own_threads)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    closed.set_value();
  } catch (...) {
    started.set_exception(std::current_exception()); // nothing behind it throws
  }
}

} // namespace

actor_house::actor_house(std::function<void(caf::actor_system&)> start) {
  std::promise<void> started;
  auto ready = started.get_future();
  std::promise<void> closed;
  closed_ = closed.get_future();
  std::thread(keep, std::move(start), std::move(started), close_.get_future(), std::move(closed)).detach();
  ready.get();
}

actor_house::~actor_house() {
  if (!closing_)
    close_.set_value();
}

bool actor_house::close(std::chrono::steady_clock::time_point deadline) {
  closing_ = true;
  close_.set_value();
  return closed_.wait_until(deadline) == std::future_status::ready;
}

} // namespace troupe
