#include "actors/edge_bridge/actor_port.hpp"

#include <caf/all.hpp>

#include "actors/company.hpp"
#include "actors/worker/prompt_preparer.hpp"
#include "config/limits.hpp"

namespace troupe {

result<void> actor_port::open_for_work() const {
  std::string why;
  switch (parts_.front->health(why)) {
  case health_state::ready: return {};
  case health_state::starting: return fail(errc::unavailable, "the service is starting; try again");
  case health_state::draining: return fail(errc::shutting_down, "the service is shutting down");
  case health_state::failing: return fail(errc::unavailable, "the service is failing: " + why);
  }
  return fail(errc::internal, "unknown health");
}

result<std::uint64_t> actor_port::submit(generation_request request, std::shared_ptr<event_sink> sink) {
  auto& metrics = *parts_.context->metrics;
  const auto refuse = [&metrics](error fault) {
    metrics.requests_refused.fetch_add(1, std::memory_order_relaxed);
    return fault;
  };
  if (auto valid = check_request(request); !valid)
    return refuse(valid.fault());
  if (!parts_.slots->try_enter())
    return refuse({errc::queue_full, "all " + std::to_string(parts_.slots->limit()) + " places are taken; try again later"});
  // Looked at after entering, so that a drain that began before counts this request or refuses it.
  const auto peers = parts_.front->peers();
  auto open = open_for_work();
  if (open && !(peers && peers->bridge.alive()))
    open = fail(errc::unavailable, "a part is being restarted; try again");
  if (!open) {
    parts_.slots->leave();
    return refuse(open.fault());
  }

  const auto number = last_number_.fetch_add(1, std::memory_order_relaxed) + 1;
  auto ticket = std::make_shared<request_ticket>(
      ticket_parts{number, std::move(sink), parts_.slots, parts_.context->metrics, parts_.front, parts_.context->clock});
  parts_.front->add(ticket);
  caf::anon_send(peers->bridge.handle,
                 open_session{std::move(ticket), std::make_shared<const generation_request>(std::move(request))});
  return number;
}

void actor_port::cancel(std::uint64_t request) noexcept {
  const auto ticket = parts_.front->find(request);
  if (!ticket)
    return;
  ticket->request_cancel(); // outlives a bridge that dies with the message
  const auto peers = parts_.front->peers();
  if (peers && peers->bridge.alive())
    caf::anon_send(peers->bridge.handle, cancel_generation{request});
}

health_state actor_port::health(std::string& why) const {
  const auto state = parts_.front->health(why);
  const auto running = parts_.device->running_for();
  if (state == health_state::ready && running && *running > limits::step_deadline) {
    why = "a step has been running for " + std::to_string(std::chrono::duration_cast<std::chrono::seconds>(*running).count()) +
          " s";
    return health_state::failing;
  }
  return state;
}

} // namespace troupe
