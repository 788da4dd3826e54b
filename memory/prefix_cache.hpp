// Owns the tree of published pages: each node is a page of tokens below the full page of the tokens before it. A node of fewer
// than page_tokens tokens is a tail: it has no children, its page may still be written behind them by its one holder, and
// others copy from it instead of sharing it.
// Promises: a page is found only for exactly the tokens it holds, behind exactly the tokens and the salt it was computed
// behind (the hash chain finds candidates, the tokens themselves decide, so a collision can't alias); a page that a
// sequence holds, or that has children, is never evicted; among the others a leaf goes by the eviction order.
// Limits: one node a page of the pool, so the pool bounds it. One thread, no locks; time is passed in.
//
// Every holder of a node holds its ancestors, too. So a node without holders has only such descendants, and all nodes without
// holders ("idle") can be evicted one leaf after the other.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "config/limits.hpp"
#include "memory/eviction_order.hpp"
#include "memory/page_pool.hpp"
#include "memory/prefix_hash.hpp"

namespace troupe {

using block_hash_fn = prefix_hash (*)(prefix_hash before, page_block block);

// A place in the tree: behind how many published full pages, and which was the last. Default: the root, for no salt yet.
struct prefix_position {
  std::uint64_t salt = 0;
  prefix_hash hash;
  page_handle last; // generation 0: the root
  std::uint32_t depth = 0;
};

// A node whose first `tokens` tokens agree with what was asked for.
struct prefix_agreement {
  page_handle page; // generation 0: none
  int tokens = 0;
};

struct prefix_cache_stats {
  std::uint64_t published = 0;  // pages that became nodes
  std::uint64_t duplicates = 0; // pages whose tokens had a node already
  std::uint64_t collisions = 0; // pages that could not become nodes because their hash was another's
  std::uint64_t evicted = 0;    // for want of room
  std::uint64_t expired = 0;
  std::uint64_t covered = 0;    // tails that gave way to a node that begins with the same tokens
};

class prefix_cache {
public:
  // The pool must outlive the cache. A test may pass a hash that collides.
  explicit prefix_cache(page_pool& pool, block_hash_fn hash = &hash_block, prefix_policy policy = {});
  prefix_cache(const prefix_cache&) = delete;
  prefix_cache& operator=(const prefix_cache&) = delete;

  prefix_position root(std::uint64_t salt) const;

  // Goes down from `at` along `tokens` for at most blocks_max whole blocks; moves `at` to the end. Each page passed is retained
  // for the caller, who gives it back with release().
  std::vector<page_handle> find(prefix_position& at, std::span<const token_id> tokens, std::size_t blocks_max);

  // The child of `at`, full or tail, that agrees longest with the beginning of `tokens`; not retained. O(log nodes).
  prefix_agreement closest(const prefix_position& at, std::span<const token_id> tokens) const;
  // `page` is a child of `at` and its first tokens are `tokens`.
  bool agrees(const prefix_position& at, page_handle page, std::span<const token_id> tokens) const;
  void retain(page_handle page); // of a node

  // For those that move pages; none of these counts as a use. Where find() would end:
  prefix_position walk(prefix_position at, std::span<const token_id> tokens, std::size_t blocks_max) const;
  std::vector<page_handle> path_to(const prefix_position& at) const; // the nodes from the first to `at`
  void keep(page_handle page);                                       // retains a node; released as any
  struct node_view {
    std::uint64_t salt = 0;
    page_handle page;
    page_handle parent; // generation 0: the root
    std::span<const token_id> tokens;
    bool idle = false;
  };
  std::optional<node_view> view(page_id page) const; // nothing where it is no node

  // Publishes `page`, which the caller holds and which a finished step has filled with `block` behind `at`; moves `at` to its
  // node. The answer is the node's page: `page` itself, or an older twin with the same tokens, which is then retained for the
  // caller; or nothing where the hash belongs to other tokens (the caller then publishes nothing below, either).
  std::optional<page_handle> publish(prefix_position& at, page_block block, page_handle page);

  // Publishes the first tokens of `page` as a tail below `at`, or more of them than before. The answer is the node that begins
  // with them: `page`, or another that already does.
  page_handle publish_tail(const prefix_position& at, std::span<const token_id> tokens, page_handle page);

  // Marks the nodes from `at` up to the root, and `tail` where there is one, to be evicted after all others; false, and nothing
  // done, where more than pages_max pages would then be pinned.
  bool pin(const prefix_position& at, std::optional<page_handle> tail, std::uint32_t pages_max);

  // Gives one reference of the caller back. A page without a node is free when it was the last; one with a node becomes idle.
  void release(page_handle page);

  // Frees up to `n` idle pages, and ends before the first that may not go (null: all may); the answer is how many.
  using may_go_fn = std::function<bool(page_id page, bool pinned)>;
  std::uint32_t evict(std::uint32_t n, const may_go_fn& may_go = nullptr);
  // It is `now`: frees what nobody held for as long as the policy allows.
  void expire(steady_time now);
  // Called for each node that is one no more, with the one that holds the same tokens in its place (generation 0: none does).
  using removal_fn = std::function<void(page_handle gone, page_handle heir)>;
  void on_removal(removal_fn hear) { hear_removal_ = std::move(hear); }
  // Called for each page that becomes a node, and for a tail that has more tokens from now on.
  using entry_fn = std::function<void(page_handle page)>;
  void on_entry(entry_fn hear) { hear_entry_ = std::move(hear); }

  std::uint32_t idle_pages() const noexcept { return idle_; }     // evictable, one leaf after the other
  std::uint32_t pinned_pages() const noexcept { return pinned_; }
  std::uint32_t idle_pinned_pages() const noexcept { return idle_pinned_; } // of the idle ones
  std::size_t nodes() const noexcept { return used_; }
  bool holds(page_id page) const;                                 // page has a node
  bool is_tail(page_id page) const { return holds(page) && node_of(page).length < limits::page_tokens; }
  const prefix_cache_stats& stats() const noexcept { return stats_; }

  void check_invariants() const;

private:
  struct node {
    bool used = false;
    bool pinned = false;
    int length = 0; // tokens; all of a page, or a tail
    std::uint64_t salt = 0;
    prefix_hash hash; // of full ones
    page_handle page;
    page_handle parent; // generation 0: below the root
    std::uint32_t children = 0;
    std::uint64_t found = 0; // times
    std::uint64_t last_used = 0;
    steady_time idle_since{};
    eviction_order::place place; // while it is an idle leaf
    std::array<token_id, static_cast<std::size_t>(limits::page_tokens)> tokens{};
    std::span<const token_id> held() const { return std::span(tokens).first(static_cast<std::size_t>(length)); }
  };

  // Siblings by their tokens, so that those that agree longest stand side by side.
  struct place_key {
    std::uint64_t salt;
    page_handle parent;
    std::span<const token_id> tokens;
    page_id page;
  };
  struct by_tokens {
    using is_transparent = void;
    const prefix_cache* cache;
    bool operator()(const place_key& a, const place_key& b) const;
    bool operator()(page_id a, page_id b) const { return (*this)(cache->key_of(a), cache->key_of(b)); }
    bool operator()(page_id a, const place_key& b) const { return (*this)(cache->key_of(a), b); }
    bool operator()(const place_key& a, page_id b) const { return (*this)(a, cache->key_of(b)); }
  };

  node& node_of(page_id page) { return nodes_[page - pool_.first()]; }
  const node& node_of(page_id page) const { return nodes_[page - pool_.first()]; }
  place_key key_of(page_id page) const;
  const node* child(const prefix_position& at, prefix_hash hash, page_block block) const;
  bool is_child(const prefix_position& at, const node& n) const { return n.used && n.salt == at.salt && n.parent == at.last; }
  bool is_idle(const node& n) const { return pool_.references(n.page) == 1; }
  void hold(node& n);
  void enter(node& n, const prefix_position& at, std::span<const token_id> tokens, page_handle page);
  void set_tokens(node& n, std::span<const token_id> tokens);
  void leave(node& n, page_handle heir = {}); // is a node no more; its page stays with its holders
  void drop(node& n, page_handle heir = {});  // an idle leaf: its page is free
  void drop_covered(const node& by);
  void wait_for_eviction(node& leaf);
  void check_node(const node& n) const;

  page_pool& pool_;
  block_hash_fn hash_;
  std::vector<node> nodes_; // by page
  std::unordered_map<prefix_hash, page_id, hash_of_prefix_hash> by_hash_; // the full ones
  std::set<page_id, by_tokens> siblings_;                                 // all
  eviction_order leaves_;                                                 // idle and childless
  removal_fn hear_removal_;
  entry_fn hear_entry_;
  std::size_t used_ = 0;
  std::uint32_t idle_ = 0;
  std::uint32_t pinned_ = 0;
  std::uint32_t idle_pinned_ = 0;
  std::uint64_t clock_ = 0; // counts uses
  steady_time now_{};
  prefix_cache_stats stats_;
};

} // namespace troupe
