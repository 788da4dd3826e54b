#include "actors/edge_bridge/leading_sink.hpp"

#include <caf/all.hpp>

#include "actors/company.hpp"

namespace troupe {

void leading_sink::push(generation_event event) noexcept {
  const auto* failed = std::get_if<generation_failed>(&event);
  const auto* finished = std::get_if<generation_finished>(&event);
  const auto peers = waiting_.empty() ? nullptr : front_->peers();
  for (open_session& each : waiting_) {
    if (failed)
      each.ticket->fail(failed->fault);
    else if (finished && finished->reason == finish_reason::cancelled)
      each.ticket->finish(finish_reason::cancelled);
    else if (peers && peers->bridge.alive())
      caf::anon_send(peers->bridge.handle, std::move(each));
  }
  waiting_.clear(); // a ticket that nobody holds fails as unavailable
  sink_->push(std::move(event));
}

} // namespace troupe
