#include "memory/prefix_cache.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/random.hpp"

namespace troupe {

// Two independent 64-bit chains: a false candidate is then too rare to cost anything. Equality is decided by the tokens.
prefix_hash hash_block(prefix_hash before, page_block block) {
  prefix_hash h{before.a ^ 0x2545f4914f6cdd1dull, before.b ^ 0x9fb21c651e98df25ull};
  for (const token_id token : block) {
    h.a = mix64(h.a ^ static_cast<std::uint32_t>(token));
    h.b = mix64(h.b + 0xd6e8feb86659fd93ull * (static_cast<std::uint32_t>(token) + 1ull));
  }
  return h;
}

prefix_hash hash_salt(std::uint64_t salt) { return {mix64(salt), mix64(~salt)}; }

prefix_cache::prefix_cache(page_pool& pool, block_hash_fn hash) : pool_(pool), hash_(hash), nodes_(pool.count()) {}

prefix_position prefix_cache::root(std::uint64_t salt) const { return {salt, hash_salt(salt), {}, 0}; }

// The node for `block` behind `at`, if its hash leads to exactly that; by induction from the root its path is the same, too.
prefix_cache::node* prefix_cache::child(const prefix_position& at, prefix_hash hash, page_block block) {
  const auto found = by_hash_.find(hash);
  if (found == by_hash_.end())
    return nullptr;
  node& n = node_of(found->second);
  const bool same = n.salt == at.salt && n.parent == at.last && std::equal(block.begin(), block.end(), n.tokens.begin());
  return same ? &n : nullptr;
}

std::vector<page_handle> prefix_cache::find(prefix_position& at, std::span<const token_id> tokens, std::size_t blocks_max) {
  constexpr auto block_tokens = static_cast<std::size_t>(limits::page_tokens);
  std::vector<page_handle> out;
  for (std::size_t i = 0; i < blocks_max && (i + 1) * block_tokens <= tokens.size(); ++i) {
    const auto block = tokens.subspan(i * block_tokens).first<block_tokens>();
    const auto hash = hash_(at.hash, block);
    node* n = child(at, hash, block);
    if (!n)
      break;
    hold(*n);
    at = {at.salt, hash, n->page, at.depth + 1};
    out.push_back(n->page);
  }
  return out;
}

std::optional<page_handle> prefix_cache::publish(prefix_position& at, page_block block, page_handle page) {
  TROUPE_CHECK(pool_.valid(page) && !node_of(page.page).used);
  const auto hash = hash_(at.hash, block);
  if (node* twin = child(at, hash, block)) {
    hold(*twin);
    ++stats_.duplicates;
    at = {at.salt, hash, twin->page, at.depth + 1};
    return twin->page;
  }
  if (by_hash_.contains(hash)) {
    ++stats_.collisions;
    return std::nullopt;
  }
  if (at.last.generation != 0) {
    node& parent = node_of(at.last.page);
    TROUPE_CHECK(parent.used && parent.page == at.last && !is_idle(parent)); // the publisher holds its whole path
    ++parent.children;
  }
  node& n = node_of(page.page);
  n = {.used = true, .salt = at.salt, .hash = hash, .page = page, .parent = at.last, .children = 0, .last_used = ++clock_};
  std::copy(block.begin(), block.end(), n.tokens.begin());
  by_hash_.emplace(hash, page.page);
  pool_.retain(page); // the tree's own reference
  ++stats_.published;
  at = {at.salt, hash, page, at.depth + 1};
  return page;
}

void prefix_cache::hold(node& n) {
  if (is_idle(n)) {
    --idle_;
    leaves_.erase({n.last_used, n.page.page});
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
  n.last_used = ++clock_;
  if (n.children == 0)
    leaves_.emplace(n.last_used, page.page);
}

std::uint32_t prefix_cache::evict(std::uint32_t n) {
  std::uint32_t freed = 0;
  while (freed < n && !leaves_.empty()) {
    const auto oldest = leaves_.begin();
    node& leaf = node_of(oldest->second);
    leaves_.erase(oldest);
    by_hash_.erase(leaf.hash);
    leaf.used = false;
    if (leaf.parent.generation != 0) {
      node& parent = node_of(leaf.parent.page);
      if (--parent.children == 0 && is_idle(parent))
        leaves_.emplace(parent.last_used, parent.page.page);
    }
    --idle_;
    TROUPE_CHECK(pool_.release(leaf.page));
    ++stats_.evicted;
    ++freed;
  }
  return freed;
}

bool prefix_cache::holds(page_id page) const { return pool_.owns(page) && node_of(page).used; }

void prefix_cache::check_invariants() const {
  std::vector<std::uint32_t> children(nodes_.size());
  std::uint32_t idle = 0;
  std::size_t used = 0;
  for (const node& n : nodes_) {
    if (!n.used)
      continue;
    ++used;
    TROUPE_CHECK(pool_.valid(n.page) && &node_of(n.page.page) == &n);
    const auto named = by_hash_.find(n.hash);
    TROUPE_CHECK(named != by_hash_.end() && named->second == n.page.page);
    if (is_idle(n))
      ++idle;
    if (n.parent.generation == 0)
      continue;
    const node& parent = node_of(n.parent.page);
    TROUPE_CHECK(parent.used && parent.page == n.parent && parent.salt == n.salt);
    TROUPE_CHECK(is_idle(n) || !is_idle(parent)); // who holds a node holds its ancestors
    ++children[n.parent.page - pool_.first()];
  }
  std::size_t leaves = 0;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const node& n = nodes_[i];
    if (!n.used)
      continue;
    TROUPE_CHECK(n.children == children[i]);
    if (n.children == 0 && is_idle(n)) {
      ++leaves;
      TROUPE_CHECK(leaves_.contains({n.last_used, n.page.page}));
    }
  }
  TROUPE_CHECK(used == by_hash_.size() && idle == idle_ && leaves == leaves_.size());
}

} // namespace troupe
