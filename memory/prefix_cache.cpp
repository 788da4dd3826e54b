// Finding, publishing and letting go; eviction and pins are in prefix_eviction.cpp.
#include "memory/prefix_cache.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace troupe {

namespace {

constexpr auto block_tokens = static_cast<std::size_t>(limits::page_tokens);

int agreement(std::span<const token_id> a, std::span<const token_id> b) {
  const auto n = std::min(a.size(), b.size());
  return static_cast<int>(std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(n), b.begin()).first - a.begin());
}

} // namespace

prefix_cache::prefix_cache(page_pool& pool, block_hash_fn hash, prefix_policy policy)
    : pool_(pool), hash_(hash), nodes_(pool.count()), siblings_(by_tokens{this}), leaves_(policy.eviction, policy.time_to_live) {}

prefix_position prefix_cache::root(std::uint64_t salt) const { return {salt, hash_salt(salt), {}, 0}; }

prefix_cache::place_key prefix_cache::key_of(page_id page) const {
  const node& n = node_of(page);
  return {n.salt, n.parent, n.held(), page};
}

// The tokens first, so that a beginning stands before what goes on from it.
bool prefix_cache::by_tokens::operator()(const place_key& a, const place_key& b) const {
  if (a.salt != b.salt)
    return a.salt < b.salt;
  if (a.parent.page != b.parent.page || a.parent.generation != b.parent.generation)
    return std::pair(a.parent.page, a.parent.generation) < std::pair(b.parent.page, b.parent.generation);
  const auto order = std::lexicographical_compare_three_way(a.tokens.begin(), a.tokens.end(), b.tokens.begin(), b.tokens.end());
  return order != 0 ? order < 0 : a.page < b.page;
}

// The node for `block` behind `at`, if its hash leads to exactly that; by induction from the root its path is the same, too.
const prefix_cache::node* prefix_cache::child(const prefix_position& at, prefix_hash hash, page_block block) const {
  const auto found = by_hash_.find(hash);
  if (found == by_hash_.end())
    return nullptr;
  const node& n = node_of(found->second);
  return is_child(at, n) && std::equal(block.begin(), block.end(), n.tokens.begin()) ? &n : nullptr;
}

std::vector<page_handle> prefix_cache::find(prefix_position& at, std::span<const token_id> tokens, std::size_t blocks_max) {
  std::vector<page_handle> out;
  for (std::size_t i = 0; i < blocks_max && (i + 1) * block_tokens <= tokens.size(); ++i) {
    const auto block = tokens.subspan(i * block_tokens).first<block_tokens>();
    const auto hash = hash_(at.hash, block);
    const node* known = child(at, hash, block);
    if (!known)
      break;
    node& n = node_of(known->page.page);
    ++n.found;
    hold(n);
    at = {at.salt, hash, n.page, at.depth + 1};
    out.push_back(n.page);
  }
  return out;
}

// In the order of tokens no sibling agrees longer than one of the two that stand around where `tokens` would stand.
prefix_agreement prefix_cache::closest(const prefix_position& at, std::span<const token_id> tokens) const {
  prefix_agreement best;
  const auto consider = [&](page_id page) {
    const node& n = node_of(page);
    if (!is_child(at, n))
      return;
    if (const int agreed = agreement(n.held(), tokens); agreed > best.tokens)
      best = {n.page, agreed};
  };
  const auto behind = siblings_.lower_bound(place_key{at.salt, at.last, tokens, 0});
  if (behind != siblings_.end())
    consider(*behind);
  if (behind != siblings_.begin())
    consider(*std::prev(behind));
  return best;
}

bool prefix_cache::agrees(const prefix_position& at, page_handle page, std::span<const token_id> tokens) const {
  if (!pool_.valid(page))
    return false;
  const node& n = node_of(page.page);
  return is_child(at, n) && agreement(n.held(), tokens) == static_cast<int>(tokens.size());
}

void prefix_cache::retain(page_handle page) {
  TROUPE_CHECK(pool_.valid(page) && node_of(page.page).used);
  ++node_of(page.page).found;
  hold(node_of(page.page));
}

void prefix_cache::keep(page_handle page) {
  TROUPE_CHECK(pool_.valid(page) && node_of(page.page).used);
  hold(node_of(page.page));
}

prefix_position prefix_cache::walk(prefix_position at, std::span<const token_id> tokens, std::size_t blocks_max) const {
  for (std::size_t i = 0; i < blocks_max && (i + 1) * block_tokens <= tokens.size(); ++i) {
    const auto block = tokens.subspan(i * block_tokens).first<block_tokens>();
    const auto hash = hash_(at.hash, block);
    const node* n = child(at, hash, block);
    if (!n)
      break;
    at = {at.salt, hash, n->page, at.depth + 1};
  }
  return at;
}

std::vector<page_handle> prefix_cache::path_to(const prefix_position& at) const {
  std::vector<page_handle> out;
  for (page_handle up = at.last; up.generation != 0; up = node_of(up.page).parent)
    out.push_back(up);
  std::reverse(out.begin(), out.end());
  return out;
}

std::optional<prefix_cache::node_view> prefix_cache::view(page_id page) const {
  if (!holds(page))
    return std::nullopt;
  const node& n = node_of(page);
  return node_view{n.salt, n.page, n.parent, n.held(), is_idle(n)};
}

std::optional<page_handle> prefix_cache::publish(prefix_position& at, page_block block, page_handle page) {
  TROUPE_CHECK(pool_.valid(page));
  node& own = node_of(page.page);
  TROUPE_CHECK(!own.used || (own.length < limits::page_tokens && is_child(at, own) && agreement(own.held(), block) == own.length));
  const auto hash = hash_(at.hash, block);
  if (const node* twin = child(at, hash, block)) {
    const auto page_of_twin = twin->page;
    if (own.used)
      leave(own, page_of_twin);
    hold(node_of(page_of_twin.page));
    ++stats_.duplicates;
    at = {at.salt, hash, page_of_twin, at.depth + 1};
    return page_of_twin;
  }
  if (by_hash_.contains(hash)) {
    ++stats_.collisions;
    return std::nullopt;
  }
  if (own.used)
    set_tokens(own, block);
  else
    enter(own, at, block, page);
  own.hash = hash;
  by_hash_.emplace(hash, page.page);
  drop_covered(own);
  at = {at.salt, hash, page, at.depth + 1};
  return page;
}

page_handle prefix_cache::publish_tail(const prefix_position& at, std::span<const token_id> tokens, page_handle page) {
  TROUPE_CHECK(pool_.valid(page) && !tokens.empty() && tokens.size() < block_tokens);
  node& own = node_of(page.page);
  if (own.used) {
    const int shorter = std::min(own.length, static_cast<int>(tokens.size()));
    TROUPE_CHECK(own.length < limits::page_tokens && is_child(at, own) && agreement(own.held(), tokens) == shorter);
    if (shorter == static_cast<int>(tokens.size()))
      return page;
  }
  const auto known = closest(at, tokens);
  if (known.tokens == static_cast<int>(tokens.size())) {
    if (own.used)
      leave(own, known.page);
    ++stats_.duplicates;
    return known.page;
  }
  if (own.used)
    set_tokens(own, tokens);
  else
    enter(own, at, tokens, page);
  drop_covered(own);
  return page;
}

void prefix_cache::enter(node& n, const prefix_position& at, std::span<const token_id> tokens, page_handle page) {
  if (at.last.generation != 0) {
    node& parent = node_of(at.last.page);
    TROUPE_CHECK(parent.used && parent.page == at.last && !is_idle(parent)); // the publisher holds its whole path
    TROUPE_CHECK(parent.length == limits::page_tokens);
    ++parent.children;
  }
  n = {};
  n.used = true;
  n.salt = at.salt;
  n.page = page;
  n.parent = at.last;
  n.last_used = ++clock_;
  n.length = static_cast<int>(tokens.size());
  std::copy(tokens.begin(), tokens.end(), n.tokens.begin());
  siblings_.insert(page.page);
  pool_.retain(page); // the tree's own reference
  ++used_;
  ++stats_.published;
  if (hear_entry_)
    hear_entry_(page);
}

void prefix_cache::set_tokens(node& n, std::span<const token_id> tokens) {
  siblings_.erase(n.page.page);
  n.length = static_cast<int>(tokens.size());
  std::copy(tokens.begin(), tokens.end(), n.tokens.begin());
  siblings_.insert(n.page.page);
  if (hear_entry_)
    hear_entry_(n.page);
}

// Idle tails that hold nothing but `by`'s beginning. Those further off go when their turn comes.
void prefix_cache::drop_covered(const node& by) {
  for (auto at = siblings_.find(by.page.page); at != siblings_.begin();) {
    node& before = node_of(*std::prev(at));
    const bool covered = before.salt == by.salt && before.parent == by.parent && before.length < by.length &&
                         agreement(before.held(), by.held()) == before.length;
    if (!covered || !is_idle(before) || before.pinned)
      return;
    drop(before, by.page);
    ++stats_.covered;
  }
}

void prefix_cache::hold(node& n) {
  if (is_idle(n)) {
    --idle_;
    idle_pinned_ -= n.pinned;
    if (n.children == 0)
      leaves_.remove(n.page.page, n.place);
  }
  pool_.retain(n.page);
}

void prefix_cache::release(page_handle page) {
  TROUPE_CHECK(pool_.valid(page));
  node& n = node_of(page.page);
  pool_.release(page);
  if (!n.used || !is_idle(n))
    return;
  ++idle_;
  idle_pinned_ += n.pinned;
  n.last_used = ++clock_;
  n.idle_since = now_;
  if (n.children == 0)
    wait_for_eviction(n);
}

bool prefix_cache::holds(page_id page) const { return pool_.owns(page) && node_of(page).used; }

} // namespace troupe
