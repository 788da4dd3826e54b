// Owns: one range of KV pages through kv_shard_memory: leases, published prefixes, eviction.
// Accepts: take_shard, reserve_pages, grow_pages, publish_pages, release_pages, peers_changed.
// Tells: the asking batcher (shard_taken, page_answer); metrics (pages_changed).
// Always true: kv_shard_memory's invariants; every page is free, used or cached.
// Limits: limits::kv_pages_max pages, limits::kv_leases_max leases; refused with no_memory beyond.
// If it fails: its successor starts with every page free and no prefix; its sequences read their prompts again.
#pragma once
#include <optional>

#include "actors/company.hpp"
#include "actors/support/runtime_context.hpp"
#include "memory/kv_shard_memory.hpp"

namespace troupe {

struct kv_shard_state {
  const char* name = "kv_shard";
  context_ptr context;
  std::optional<kv_shard_memory> memory;
  member<metrics_actor> metrics;
  pages_changed told;     // last
  kv_shard_stats counted; // what the counters have of it
};

kv_shard_actor::behavior_type kv_shard(kv_shard_actor::stateful_pointer<kv_shard_state> self, context_ptr context,
                                       kv_shard_config config);

} // namespace troupe
