// Owns one shard of the KV memory: its page range, who holds which pages under which lease, the published prefixes, and the
// kept states of prompts.
// Promises: a page that a lease may still write belongs to that lease alone, and what is published of it is not written any
// more; a shared page is full and never written; what a lease holds comes back with its release, or with release_all; pages
// are published only when told so, after the step. Every page is at any time exactly one of: free, used (by leases, with as
// many references as holders), cached.
// Limits: limits::kv_pages_max pages, limits::kv_leases_max leases; beyond them a reservation is refused with no_memory.
// limits::prompt_states_max states, the policy's share of pinned pages; beyond it a pin is counted and not done.
// A defect of the asking side (unknown lease aside, which is a late message) fails a check. One thread, no locks; time is
// passed in.
//
// A reservation is at least what the sequence needs and grows by half, so that a decoding sequence seldom asks.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/ids.hpp"
#include "memory/page_messages.hpp"
#include "memory/page_pool.hpp"
#include "memory/prefix_cache.hpp"
#include "memory/prompt_states.hpp"

namespace troupe {

struct kv_shard_config {
  std::uint32_t index = 0; // of this shard
  page_id first = 0;       // pages [first, first + pages) of the device
  std::uint32_t pages = 0;
  prefix_policy prefix = {};
};

struct kv_shard_stats {
  std::uint32_t pages = 0;
  std::uint32_t free = 0;
  std::uint32_t cached = 0;
  std::uint32_t used = 0;
  std::uint32_t pinned = 0;          // of cached and used ones
  std::uint32_t leases = 0;
  std::uint32_t held = 0;            // holds for transfers
  std::uint32_t states = 0;          // kept
  std::uint64_t reservations = 0;    // granted
  std::uint64_t refusals = 0;        // of reservations and growth
  std::uint64_t growths = 0;
  std::uint64_t asked_tokens = 0;    // of granted reservations
  std::uint64_t hit_tokens = 0;      // of those, found in the prefix cache
  std::uint64_t copied_tokens = 0;   // of those, in pages that are copied
  std::uint64_t hits = 0;            // reservations that found at least a token
  std::uint64_t state_hits = 0;      // that found a state, so nothing is computed
  std::uint64_t pins_refused = 0;    // for want of room in the share of pinned pages
  std::uint64_t published_pages = 0;
  std::uint64_t evicted_pages = 0;   // for want of room
  std::uint64_t expired_pages = 0;
  std::uint64_t covered_pages = 0;   // tails that others cover
  std::uint64_t granted_pages = 0;   // freshly, not shared
  std::uint64_t granted_runs = 0;    // contiguous runs these came in
};

class kv_shard_memory {
public:
  explicit kv_shard_memory(kv_shard_config config);
  kv_shard_memory(const kv_shard_memory&) = delete;
  kv_shard_memory& operator=(const kv_shard_memory&) = delete;

  // It is `now`: what outlived the policy's time goes. Told before anything else is asked.
  void pass(steady_time now) { cache_.expire(now); }

  std::variant<pages_reserved, pages_refused> reserve(const reserve_pages& ask);
  std::variant<pages_grown, pages_refused> grow(const grow_pages& ask); // an unknown lease is refused with not_found
  void publish(const publish_pages& tell);                              // an unknown lease is ignored
  pages_released release(const release_pages& tell);                    // an unknown lease is ignored
  // The batcher that held the leases is gone: all return, what was published stays. Holds stay.
  void release_all();

  // -- for transfers between the device and the tiers below it (kv_shard_holds.cpp) --
  // Where what is published of `tokens` ends, and how many of the next ones any page there begins with.
  prefix_position position_of(std::uint64_t salt, std::span<const token_id> tokens) const;
  int agreement(const prefix_position& at, std::span<const token_id> tokens) const { return cache_.closest(at, tokens).tokens; }
  std::optional<prefix_cache::node_view> node(page_id page) const { return cache_.view(page); }
  // Of what the lease has published; nothing where it is unknown.
  std::optional<prefix_hash> published_by(lease_id lease) const;
  // Pages that a new reservation may take in all.
  std::uint32_t open_to_new() const noexcept;

  // A hold keeps nodes, each with those above it, and fresh pages that nobody else has. hold(): from the root to `deepest`
  // (generation 0: nothing yet).
  using hold_id = std::uint64_t;
  hold_id hold(page_handle deepest);
  std::optional<page_handle> hold_fresh(hold_id hold, const prefix_cache::may_go_fn& may_go); // may_go: as of evict()
  void drop_fresh(hold_id hold, page_handle page);
  // A fresh page holds `tokens` behind `at` (whose node is held): it becomes a node, held; a whole page moves `at` on. The answer
  // is the node that holds the tokens, nothing where their hash is another's; a page that became no node is free.
  std::optional<page_handle> adopt(hold_id hold, prefix_position& at, std::span<const token_id> tokens, page_handle page);
  void let_go(hold_id hold);
  // Counts as used now: the path to `at`, and the page behind it that agrees longest with `rest`. The answer is these.
  std::vector<page_handle> touch(const prefix_position& at, std::span<const token_id> rest);
  bool has_holds() const noexcept { return !holds_.empty(); }
  void on_entry(prefix_cache::entry_fn hear) { cache_.on_entry(std::move(hear)); }
  void on_removal(prefix_cache::removal_fn hear) { hear_removal_ = std::move(hear); } // as prefix_cache's

  shard_report report();                // with a new serial
  kv_shard_stats stats() const;
  const kv_shard_config& config() const noexcept { return config_; }

  void check_invariants() const;        // costs a walk over all pages
  // Says which of `pages` a step of the lease must not touch, because the lease is gone or was never given it; nothing where all
  // are its own or shared with it. For simulations and debug builds.
  std::optional<std::string> stale_page(lease_id lease, const std::vector<page_id>& pages) const;

private:
  struct holding {
    request_id id;
    std::vector<page_handle> pages;     // in order of positions; the first at.depth published, unless publishing stopped
    std::vector<page_handle> twins;     // nodes on this lease's path that are not among its own pages
    page_handle source;                 // copied from by a step that has not ended; generation 0: none
    prefix_position at;
    bool publishing = true;
  };
  struct reuse {
    page_handle source; // generation 0: nothing agrees
    int tokens = 0;     // of it
    prompt_state_ptr state;
  };

  struct page_hold {
    std::vector<page_handle> nodes;
    std::vector<page_handle> fresh;
  };

  // kv_shard_memory.cpp: who holds what
  bool make_free(std::uint32_t pages);
  std::vector<page_handle> take(std::uint32_t pages, const std::vector<page_handle>& behind);
  void give_back(holding& h);
  std::uint32_t available() const noexcept { return pool_.free_pages() + cache_.idle_pages(); }
  pages_refused refuse(lease_id lease, request_id id, errc code, std::string why);

  // kv_shard_publish.cpp: what is found and published
  reuse find_rest(const holding& h, const reserve_pages& ask);
  void let_source_go(holding& h);
  // Where the last of the published tokens lie: in `page`, behind `before`.
  struct published_end {
    prefix_position before;
    page_handle page; // generation 0: their page is not published
    std::span<const token_id> tokens;
  };
  published_end publish_to(holding& h, int position, std::span<const token_id> tokens);

  kv_shard_config config_;
  page_pool pool_;
  prefix_cache cache_;
  prompt_states states_;
  std::unordered_map<lease_id, holding> leases_;
  std::map<hold_id, page_hold> holds_;
  hold_id next_hold_ = 1;
  prefix_cache::removal_fn hear_removal_;
  std::uint64_t serial_ = 0;
  kv_shard_stats counters_;
};

// Pages that hold `tokens`.
constexpr std::uint32_t pages_for(int tokens) noexcept {
  return static_cast<std::uint32_t>((tokens + limits::page_tokens - 1) / limits::page_tokens);
}

} // namespace troupe
