#include "actors/metrics/copy_overlap.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace troupe {

void copy_overlap::change(steady_time now, part what, int by) {
  const std::lock_guard guard(lock_);
  const auto on = [this](part p) { return going_on_[static_cast<std::size_t>(p)] > 0; };
  const auto spent = std::max(now - since_, steady_time::duration::zero()); // threads read the clock before they get here
  since_ = std::max(since_, now);
  if (on(part::copying)) {
    totals_.copying += spent;
    if (on(part::stepping))
      totals_.beside_steps += spent;
    if (on(part::stepping) || !on(part::waiting))
      totals_.hidden += spent;
  }
  auto& count = going_on_[static_cast<std::size_t>(what)];
  count += by;
  TROUPE_CHECK(count >= 0);
}

copy_overlap::totals copy_overlap::read() const {
  const std::lock_guard guard(lock_);
  return totals_;
}

} // namespace troupe
