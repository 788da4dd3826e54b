// Owns one shard of the KV memory: its page range, who holds which pages under which lease, and the published prefixes.
// Promises: a page that a lease may still write belongs to that lease alone; a shared page is full and never written; what a
// lease holds comes back with its release, or with release_all; pages are published only when told so, after the step.
// Every page is at any time exactly one of: free, used (by leases, with as many references as holders), cached.
// Limits: limits::kv_pages_max pages, limits::kv_leases_max leases; beyond them a reservation is refused with no_memory.
// A defect of the asking side (unknown lease aside, which is a late message) fails a check. One thread, no locks.
//
// A reservation is at least what the sequence needs and grows by half, so that a decoding sequence seldom asks.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/ids.hpp"
#include "memory/page_messages.hpp"
#include "memory/page_pool.hpp"
#include "memory/prefix_cache.hpp"

namespace troupe {

struct kv_shard_config {
  std::uint32_t index = 0;   // of this shard
  page_id first = 0;         // pages [first, first + pages) of the device
  std::uint32_t pages = 0;
  bool prefix_reuse = true;  // off: nothing is published, so nothing is found
};

struct kv_shard_stats {
  std::uint32_t pages = 0;
  std::uint32_t free = 0;
  std::uint32_t cached = 0;
  std::uint32_t used = 0;
  std::uint32_t leases = 0;
  std::uint64_t reservations = 0;    // granted
  std::uint64_t refusals = 0;        // of reservations and growth
  std::uint64_t growths = 0;
  std::uint64_t asked_tokens = 0;    // of granted reservations
  std::uint64_t hit_tokens = 0;      // of those, found in the prefix cache
  std::uint64_t hits = 0;            // reservations that found at least a page
  std::uint64_t published_pages = 0;
  std::uint64_t evicted_pages = 0;
  std::uint64_t granted_pages = 0;   // freshly, not shared
  std::uint64_t granted_runs = 0;    // contiguous runs these came in
};

class kv_shard_memory {
public:
  explicit kv_shard_memory(kv_shard_config config);

  std::variant<pages_reserved, pages_refused> reserve(const reserve_pages& ask);
  std::variant<pages_grown, pages_refused> grow(const grow_pages& ask); // an unknown lease is refused with not_found
  void publish(const publish_pages& tell);                              // an unknown lease is ignored
  pages_released release(const release_pages& tell);                    // an unknown lease is ignored
  // The batcher that held the leases is gone: all return, what was published stays.
  void release_all();

  shard_report report();                // with a new serial
  kv_shard_stats stats() const;
  const kv_shard_config& config() const noexcept { return config_; }

  void check_invariants() const;        // costs a walk over all pages

private:
  struct holding {
    request_id id;
    std::vector<page_handle> pages;     // in order of positions; the first at.depth published, unless publishing stopped
    std::vector<page_handle> twins;     // nodes on this lease's path that are not among its own pages
    prefix_position at;
    bool publishing = true;
  };

  bool make_free(std::uint32_t pages);
  std::vector<page_handle> take(std::uint32_t pages, const std::vector<page_handle>& behind);
  void publish_to(holding& h, int position, const std::vector<token_id>& tokens);
  void give_back(holding& h);
  std::uint32_t available() const noexcept { return pool_.free_pages() + cache_.idle_pages(); }
  pages_refused refuse(lease_id lease, request_id id, errc code, std::string why);

  kv_shard_config config_;
  page_pool pool_;
  prefix_cache cache_;
  std::unordered_map<lease_id, holding> leases_;
  std::uint64_t serial_ = 0;
  kv_shard_stats counters_;
};

// Pages that hold `tokens`.
constexpr std::uint32_t pages_for(int tokens) noexcept {
  return static_cast<std::uint32_t>((tokens + limits::page_tokens - 1) / limits::page_tokens);
}

} // namespace troupe
