// How nodes leave the prefix tree, what keeps them longer, and the tree's invariants.
#include <algorithm>

#include "base/check.hpp"
#include "memory/prefix_cache.hpp"

namespace troupe {

void prefix_cache::wait_for_eviction(node& leaf) {
  leaf.place = leaves_.add(leaf.page.page, {leaf.pinned, leaf.found, leaf.last_used, leaf.idle_since});
}

void prefix_cache::leave(node& n, page_handle heir) {
  TROUPE_CHECK(n.used && n.children == 0);
  siblings_.erase(n.page.page);
  if (n.length == limits::page_tokens)
    by_hash_.erase(n.hash);
  n.used = false;
  --used_;
  pinned_ -= n.pinned;
  if (n.parent.generation != 0) {
    node& parent = node_of(n.parent.page);
    if (--parent.children == 0 && is_idle(parent))
      wait_for_eviction(parent);
  }
  if (hear_removal_)
    hear_removal_(n.page, heir);
  pool_.release(n.page); // the tree's own reference
}

void prefix_cache::drop(node& n, page_handle heir) {
  TROUPE_CHECK(is_idle(n));
  leaves_.remove(n.page.page, n.place);
  --idle_;
  idle_pinned_ -= n.pinned;
  leave(n, heir);
}

std::uint32_t prefix_cache::evict(std::uint32_t n, const may_go_fn& may_go) {
  std::uint32_t freed = 0;
  for (; freed < n; ++freed) {
    const auto first = leaves_.first();
    if (!first || (may_go && !may_go(*first, node_of(*first).pinned)))
      break;
    leaves_.gave_way(node_of(*first).place);
    drop(node_of(*first));
    ++stats_.evicted;
  }
  return freed;
}

void prefix_cache::expire(steady_time now) {
  now_ = std::max(now_, now);
  while (const auto due = leaves_.expired(now_)) {
    drop(node_of(*due));
    ++stats_.expired;
  }
}

bool prefix_cache::pin(const prefix_position& at, std::optional<page_handle> tail, std::uint32_t pages_max) {
  std::vector<page_id> path;
  if (tail)
    path.push_back(tail->page);
  for (page_handle up = at.last; up.generation != 0; up = node_of(up.page).parent)
    path.push_back(up.page);
  const auto fresh = std::count_if(path.begin(), path.end(), [this](page_id page) { return !node_of(page).pinned; });
  if (static_cast<std::uint32_t>(fresh) > pages_max - std::min(pages_max, pinned_))
    return false;
  for (const page_id page : path) {
    node& n = node_of(page);
    TROUPE_CHECK(n.used);
    const bool waits = is_idle(n) && n.children == 0;
    if (waits)
      leaves_.remove(page, n.place);
    pinned_ += !n.pinned;
    idle_pinned_ += is_idle(n) && !n.pinned;
    n.pinned = true;
    if (waits)
      wait_for_eviction(n);
  }
  return true;
}

void prefix_cache::check_node(const node& n) const {
  TROUPE_CHECK(pool_.valid(n.page) && &node_of(n.page.page) == &n);
  TROUPE_CHECK(n.length > 0 && n.length <= limits::page_tokens);
  TROUPE_CHECK(siblings_.contains(n.page.page));
  if (n.length == limits::page_tokens) {
    const auto named = by_hash_.find(n.hash);
    TROUPE_CHECK(named != by_hash_.end() && named->second == n.page.page);
  } else {
    TROUPE_CHECK(n.children == 0);
  }
  if (n.children == 0 && is_idle(n))
    TROUPE_CHECK(leaves_.contains(n.page.page, n.place) && n.place.pinned == n.pinned);
  if (n.parent.generation == 0)
    return;
  const node& parent = node_of(n.parent.page);
  TROUPE_CHECK(parent.used && parent.page == n.parent && parent.salt == n.salt && parent.length == limits::page_tokens);
  TROUPE_CHECK(is_idle(n) || !is_idle(parent)); // who holds a node holds its ancestors
}

void prefix_cache::check_invariants() const {
  std::vector<std::uint32_t> children(nodes_.size());
  std::uint32_t idle = 0, pinned = 0, idle_pinned = 0;
  std::size_t used = 0, full = 0, leaves = 0;
  for (const node& n : nodes_) {
    if (!n.used)
      continue;
    check_node(n);
    ++used;
    full += n.length == limits::page_tokens;
    idle += is_idle(n);
    pinned += n.pinned;
    idle_pinned += is_idle(n) && n.pinned;
    leaves += n.children == 0 && is_idle(n);
    if (n.parent.generation != 0)
      ++children[n.parent.page - pool_.first()];
  }
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    TROUPE_CHECK(!nodes_[i].used || nodes_[i].children == children[i]);
  TROUPE_CHECK(used == used_ && used == siblings_.size() && full == by_hash_.size());
  TROUPE_CHECK(idle == idle_ && pinned == pinned_ && idle_pinned == idle_pinned_ && leaves == leaves_.size());
}

} // namespace troupe
