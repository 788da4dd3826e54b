#include "memory/eviction_order.hpp"

#include "base/check.hpp"
#include "config/limits.hpp"

namespace troupe {

eviction_order::place eviction_order::add(page_id page, const leaf& of) {
  place at{of.pinned, policy_ == eviction_policy::lfu ? age_ + of.found : 0, of.last_used, steady_time::max()};
  if (of.pinned)
    at.expires = of.idle_since + limits::pin_life;
  else if (life_ > steady_time::duration::zero())
    at.expires = of.idle_since + life_;
  order_.emplace(at, page);
  if (at.expires != steady_time::max())
    due_.emplace(at.expires, page);
  return at;
}

void eviction_order::remove(page_id page, const place& from) {
  TROUPE_CHECK(order_.erase({from, page}) == 1);
  if (from.expires != steady_time::max())
    due_.erase({from.expires, page});
}

std::optional<page_id> eviction_order::first() const {
  return order_.empty() ? std::nullopt : std::optional(order_.begin()->second);
}

std::optional<page_id> eviction_order::expired(steady_time now) const {
  return due_.empty() || due_.begin()->first > now ? std::nullopt : std::optional(due_.begin()->second);
}

} // namespace troupe
