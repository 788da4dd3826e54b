// Owns the order in which idle leaves of the prefix tree are given up: for want of room, and because they are too old.
// Promises: a pinned leaf goes after all others, and expires after limits::pin_life instead of the policy's time to live.
// Limits: one entry a leaf, so the pool bounds it. One thread, no locks; time is passed in.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "memory/prefix_policy.hpp"

namespace troupe {

class eviction_order {
public:
  // Where a leaf stands; kept by whoever added it, to remove it again.
  struct place {
    bool pinned = false;
    std::uint64_t rank = 0;      // 0 under lru; under lfu how often it was found, plus the age when it became idle
    std::uint64_t last_used = 0; // counts uses of all
    steady_time expires = steady_time::max();
    friend auto operator<=>(const place&, const place&) = default;
  };
  struct leaf {
    bool pinned = false;
    std::uint64_t found = 0; // times
    std::uint64_t last_used = 0;
    steady_time idle_since{};
  };

  eviction_order(eviction_policy policy, steady_time::duration time_to_live) : policy_(policy), life_(time_to_live) {}

  place add(page_id page, const leaf& of);
  void remove(page_id page, const place& from);

  std::optional<page_id> first() const;                   // to go when room is wanted
  std::optional<page_id> expired(steady_time now) const;  // the one that is due longest, if any is due
  void gave_way(const place& from) { age_ = std::max(age_, from.rank); } // lfu: later ones rank above what was given up
  std::size_t size() const noexcept { return order_.size(); }
  bool contains(page_id page, const place& at) const { return order_.contains({at, page}); }

private:
  eviction_policy policy_;
  steady_time::duration life_; // zero: no end
  std::uint64_t age_ = 0;
  std::set<std::pair<place, page_id>> order_;
  std::set<std::pair<steady_time, page_id>> due_; // those that expire
};

} // namespace troupe
