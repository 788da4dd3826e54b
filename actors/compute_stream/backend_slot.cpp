#include "actors/compute_stream/backend_slot.hpp"

#include <algorithm>
#include <exception>
#include <new>

#include "base/check.hpp"

namespace troupe {

namespace {

// What the batcher relies on: one answer a sequence, in the plan's order, with a token or a fault where one was asked for.
bool fits(const step_plan& plan, const step_result& done) {
  if (done.number != plan.number || done.sequences.size() != plan.sequences.size())
    return false;
  for (std::size_t i = 0; i < plan.sequences.size(); ++i) {
    const auto& asked = plan.sequences[i];
    const auto& got = done.sequences[i];
    if (!(got.id == asked.id) || (asked.sample && !got.token && !got.fault))
      return false;
  }
  return true;
}

} // namespace

backend_slot::backend_slot(std::unique_ptr<backend> owned, clock_fn clock)
    : backend_(std::move(owned)), shape_(backend_->shape()), clock_(std::move(clock)) {}

result<step_result> backend_slot::run(const step_plan& plan) {
  // Never 0, whatever the clock's epoch.
  const auto now = std::max<std::int64_t>(1, clock_().time_since_epoch().count());
  TROUPE_CHECK(since_.exchange(now, std::memory_order_acq_rel) == 0);
  auto done = guarded_run(plan);
  since_.store(0, std::memory_order_release);
  return done;
}

result<step_result> backend_slot::guarded_run(const step_plan& plan) {
  try {
    auto done = backend_->run(plan);
    if (done && !fits(plan, *done))
      return fail(errc::internal, "the backend's answer does not fit step " + std::to_string(plan.number));
    return done;
  } catch (const check_failed& e) {
    return fail(errc::internal, e.what());
  } catch (const std::bad_alloc&) {
    return fail(errc::no_memory, "the backend ran out of memory in step " + std::to_string(plan.number));
  } catch (const std::exception& e) {
    return fail(errc::device_failed, e.what());
  } catch (...) {
    return fail(errc::device_failed, "the backend failed in step " + std::to_string(plan.number));
  }
}

result<void> backend_slot::read_page(page_id page, std::span<std::byte> to) const {
  try {
    return backend_->read_page(page, to);
  } catch (const std::exception& e) {
    return fail(errc::device_failed, e.what());
  }
}

result<void> backend_slot::write_page(page_id page, std::span<const std::byte> from) {
  try {
    return backend_->write_page(page, from);
  } catch (const std::exception& e) {
    return fail(errc::device_failed, e.what());
  }
}

std::optional<std::chrono::steady_clock::duration> backend_slot::running_for() const {
  const auto since = since_.load(std::memory_order_acquire);
  if (since == 0)
    return std::nullopt;
  return clock_().time_since_epoch() - std::chrono::steady_clock::duration(since);
}

} // namespace troupe
