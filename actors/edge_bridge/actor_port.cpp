#include "actors/edge_bridge/actor_port.hpp"

#include <caf/all.hpp>

#include "actors/company.hpp"
#include "actors/edge_bridge/leading_sink.hpp"
#include "actors/worker/prompt_preparer.hpp"
#include "config/limits.hpp"

namespace troupe {

result<void> actor_port::open_for_work() const {
  std::string why;
  switch (health(why)) {
  case health_state::ready: return {};
  case health_state::starting: return fail(errc::unavailable, "the service is starting; try again");
  case health_state::draining: return fail(errc::shutting_down, "the service is shutting down");
  case health_state::failing: return fail(errc::unavailable, "the service is failing: " + why);
  }
  return fail(errc::internal, "unknown health");
}

// The gate. On success `places` are taken, and the company is there to be told.
result<std::shared_ptr<const company>> actor_port::admit(const generation_request& request, int places) {
  auto& metrics = *parts_.context->metrics;
  const auto refuse = [&](error fault) {
    metrics.requests_refused.fetch_add(static_cast<std::uint64_t>(places), std::memory_order_relaxed);
    return fault;
  };
  if (auto valid = check_request(request); !valid)
    return refuse(valid.fault());
  if (places > parts_.slots->limit())
    return refuse({errc::invalid_argument, std::to_string(places) + " choices are more than the " +
                                               std::to_string(parts_.slots->limit()) + " requests that this server takes at a time"});
  if (!parts_.slots->try_enter(places))
    return refuse({errc::queue_full, "not " + std::to_string(places) + " of the " + std::to_string(parts_.slots->limit()) +
                                         " places are free; try again later"});
  // Looked at after entering, so that a drain that began before counts this request or refuses it.
  auto peers = parts_.front->peers();
  auto open = open_for_work();
  if (open && !(peers && peers->bridge.alive()))
    open = fail(errc::unavailable, "a part is being restarted; try again");
  if (!open) {
    for (int i = 0; i < places; ++i)
      parts_.slots->leave();
    return refuse(open.fault());
  }
  return peers;
}

ticket_ptr actor_port::make_ticket(std::shared_ptr<event_sink> sink) {
  const auto number = last_number_.fetch_add(1, std::memory_order_relaxed) + 1;
  auto ticket = std::make_shared<request_ticket>(
      ticket_parts{number, std::move(sink), parts_.slots, parts_.context->metrics, parts_.front, parts_.context->clock});
  parts_.front->add(ticket);
  return ticket;
}

result<std::uint64_t> actor_port::submit(generation_request request, std::shared_ptr<event_sink> sink) {
  const auto peers = admit(request, 1);
  if (!peers)
    return peers.fault();
  auto ticket = make_ticket(std::move(sink));
  const auto number = ticket->number();
  caf::anon_send((*peers)->bridge.handle,
                 open_session{std::move(ticket), std::make_shared<const generation_request>(std::move(request))});
  return number;
}

result<std::vector<std::uint64_t>> actor_port::submit_choices(generation_request request,
                                                              std::vector<std::shared_ptr<event_sink>> sinks) {
  TROUPE_CHECK(!sinks.empty());
  const auto peers = admit(request, static_cast<int>(sinks.size()));
  if (!peers)
    return peers.fault();
  std::vector<open_session> waiting;
  for (std::size_t i = 1; i < sinks.size(); ++i) {
    auto own = std::make_shared<generation_request>(request);
    if (own->sampling.seed)
      own->sampling.seed = choice_seed(*own->sampling.seed, i);
    waiting.push_back({make_ticket(std::move(sinks[i])), std::move(own)});
  }
  std::vector<std::uint64_t> numbers;
  for (const open_session& each : waiting)
    numbers.push_back(each.ticket->number());
  auto first = make_ticket(std::make_shared<leading_sink>(std::move(sinks[0]), std::move(waiting), parts_.front));
  numbers.insert(numbers.begin(), first->number());
  caf::anon_send((*peers)->bridge.handle,
                 open_session{std::move(first), std::make_shared<const generation_request>(std::move(request))});
  return numbers;
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
