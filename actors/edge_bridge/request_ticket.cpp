#include "actors/edge_bridge/request_ticket.hpp"

#include "actors/metrics/metrics_registry.hpp"
#include "actors/supervisor/company_front.hpp"

namespace troupe {

bool in_flight::try_enter(int requests) noexcept {
  int now = count_.load(std::memory_order_relaxed);
  while (now <= limit_ - requests)
    if (count_.compare_exchange_weak(now, now + requests, std::memory_order_acq_rel))
      return true;
  return false;
}

void in_flight::leave() noexcept {
  if (count_.fetch_sub(1, std::memory_order_acq_rel) != 1)
    return;
  // Taking the lock orders this after a waiter's look at the count, so that the wake-up can't fall between look and wait.
  const std::lock_guard guard(lock_);
  none_.notify_all();
}

bool in_flight::wait_none(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock guard(lock_);
  return none_.wait_until(guard, deadline, [this] { return count() == 0; });
}

request_ticket::request_ticket(ticket_parts parts) : parts_(std::move(parts)), submitted_at_(parts_.clock()) {}

request_ticket::~request_ticket() {
  if (!ended_)
    fail({errc::unavailable, "the part that served this request died; send it again"});
  if (parts_.front)
    parts_.front->remove(parts_.number);
}

void request_ticket::push(generation_event event) noexcept {
  const std::lock_guard guard(lock_);
  if (!ended_)
    parts_.sink->push(std::move(event));
}

bool request_ticket::finish(finish_reason reason) noexcept {
  return end(generation_finished{reason, {}}, metrics_registry::outcome_of(reason));
}

bool request_ticket::fail(error fault) noexcept {
  const auto outcome = name_of(fault.code);
  return end(generation_failed{std::move(fault), {}}, outcome);
}

bool request_ticket::ended() const noexcept {
  const std::lock_guard guard(lock_);
  return ended_;
}

void request_ticket::count(const token_usage& usage) noexcept {
  const std::lock_guard guard(lock_);
  usage_ = usage;
}

bool request_ticket::end(generation_event event, std::string_view outcome) noexcept {
  const std::lock_guard guard(lock_);
  if (ended_)
    return false;
  ended_ = true;
  unwanted_->store(true, std::memory_order_relaxed);
  if (auto* finished = std::get_if<generation_finished>(&event))
    finished->usage = usage_;
  if (auto* failed = std::get_if<generation_failed>(&event))
    failed->usage = usage_;
  parts_.metrics->request_ended(outcome, parts_.clock() - submitted_at_);
  parts_.slots->leave();
  parts_.sink->push(std::move(event));
  return true;
}

} // namespace troupe
