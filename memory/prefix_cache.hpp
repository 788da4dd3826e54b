// Owns the tree of published pages: each node is a page full of tokens below the page of the tokens before it.
// Promises: a page is found only for exactly the tokens it holds, behind exactly the tokens and the salt it was computed
// behind (the hash chain finds candidates, the tokens themselves decide, so a collision can't alias); a page that a
// sequence holds, or that has children, is never evicted; among the others the least recently used leaf goes first.
// Limits: one node a page of the pool, so the pool bounds it. One thread, no locks.
//
// Every holder of a node holds its ancestors, too. So a node without holders has only such descendants, and all nodes without
// holders ("idle") can be evicted one leaf after the other.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "config/limits.hpp"
#include "memory/page_pool.hpp"

namespace troupe {

struct prefix_hash {
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  friend bool operator==(const prefix_hash&, const prefix_hash&) = default;
};

using page_block = std::span<const token_id, static_cast<std::size_t>(limits::page_tokens)>;

// The hash of `block` behind the tokens that `before` stands for.
using block_hash_fn = prefix_hash (*)(prefix_hash before, page_block block);
prefix_hash hash_block(prefix_hash before, page_block block);
prefix_hash hash_salt(std::uint64_t salt);

// A place in the tree: behind how many published pages, and which was the last. Default: the root, for no salt yet.
struct prefix_position {
  std::uint64_t salt = 0;
  prefix_hash hash;
  page_handle last; // generation 0: the root
  std::uint32_t depth = 0;
};

struct prefix_cache_stats {
  std::uint64_t published = 0;  // pages that became nodes
  std::uint64_t duplicates = 0; // pages whose tokens had a node already
  std::uint64_t collisions = 0; // pages that could not become nodes because their hash was another's
  std::uint64_t evicted = 0;
};

class prefix_cache {
public:
  // The pool must outlive the cache. A test may pass a hash that collides.
  explicit prefix_cache(page_pool& pool, block_hash_fn hash = &hash_block);
  prefix_cache(const prefix_cache&) = delete;
  prefix_cache& operator=(const prefix_cache&) = delete;

  prefix_position root(std::uint64_t salt) const;

  // Goes down from `at` along `tokens` for at most blocks_max whole blocks; moves `at` to the end. Each page passed is retained
  // for the caller, who gives it back with release().
  std::vector<page_handle> find(prefix_position& at, std::span<const token_id> tokens, std::size_t blocks_max);

  // Publishes `page`, which the caller holds and which a finished step has filled with `block` behind `at`; moves `at` to its
  // node. The answer is the node's page: `page` itself, or an older twin with the same tokens, which is then retained for the
  // caller; or nothing where the hash belongs to other tokens (the caller then publishes nothing below, either).
  std::optional<page_handle> publish(prefix_position& at, page_block block, page_handle page);

  // Gives one reference of the caller back. A page without a node is free when it was the last; one with a node becomes idle.
  void release(page_handle page);

  // Frees up to `n` idle pages; the answer is how many.
  std::uint32_t evict(std::uint32_t n);

  std::uint32_t idle_pages() const noexcept { return idle_; }      // evictable, one leaf after the other
  std::size_t nodes() const noexcept { return by_hash_.size(); }
  bool holds(page_id page) const;                                 // page has a node
  const prefix_cache_stats& stats() const noexcept { return stats_; }

  void check_invariants() const;

private:
  struct hash_of_hash {
    std::size_t operator()(const prefix_hash& h) const noexcept { return static_cast<std::size_t>(h.a ^ h.b); }
  };
  struct node {
    bool used = false;
    std::uint64_t salt = 0;
    prefix_hash hash;
    page_handle page;
    page_handle parent; // generation 0: below the root
    std::uint32_t children = 0;
    std::uint64_t last_used = 0;
    std::array<token_id, static_cast<std::size_t>(limits::page_tokens)> tokens{};
  };

  node& node_of(page_id page) { return nodes_[page - pool_.first()]; }
  const node& node_of(page_id page) const { return nodes_[page - pool_.first()]; }
  node* child(const prefix_position& at, prefix_hash hash, page_block block);
  bool is_idle(const node& n) const { return pool_.references(n.page) == 1; }
  void hold(node& n);

  page_pool& pool_;
  block_hash_fn hash_;
  std::vector<node> nodes_; // by page
  std::unordered_map<prefix_hash, page_id, hash_of_hash> by_hash_;
  std::set<std::pair<std::uint64_t, page_id>> leaves_; // idle and childless, by last use
  std::uint32_t idle_ = 0;
  std::uint64_t clock_ = 0;
  prefix_cache_stats stats_;
};

} // namespace troupe
