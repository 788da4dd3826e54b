#include "actors/support/actor_house.hpp"

#include <future>
#include <thread>

#include "config/limits.hpp"

namespace troupe {

actor_house::quiet_config::quiet_config() {
  // One shared queue: its workers sleep on a condition variable, where the default policy polls.
  set("scheduler.policy", caf::atom("sharing"));
  set("scheduler.max-threads", static_cast<std::size_t>(limits::control_threads));
  set("logger.console", caf::atom("none"));
  set("logger.file-verbosity", caf::atom("quiet"));
}

actor_house::actor_house() : system_(config_), own_threads_(system_.detached_actors()) {
  system_.await_actors_before_shutdown(false); // close() waits, with a deadline
}

bool actor_house::empty() { return system_.registry().running() == 0 && system_.detached_actors() <= own_threads_; }

bool actor_house::close(std::unique_ptr<actor_house> house, std::chrono::steady_clock::time_point deadline) {
  auto closed = std::make_shared<std::promise<void>>();
  auto done = closed->get_future();
  // Destroying the system while a detached actor's thread still leaves it is a race in CAF 0.17 (its issue 1196); so the helper
  // looks until they have left, for which CAF offers no waiting.
  std::thread([house = std::move(house), closed]() mutable {
    while (!house->empty())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    house.reset();
    closed->set_value();
  }).detach();
  return done.wait_until(deadline) == std::future_status::ready;
}

} // namespace troupe
