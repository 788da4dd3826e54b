// Owns: one range of KV pages and what of it lies in the tiers below, through tiered_shard: leases, published prefixes,
// eviction. Accepts: take_shard, reserve_pages, grow_pages, publish_pages, release_pages, expect_prompt; pages_moved,
// moves_settled,
//   steps_awaited; peers_changed.
// Tells: the asking batcher (shard_taken, page_answer); the transfer_stream (move_pages, settle_moves); the compute_stream
//   (await_steps); metrics (pages_changed).
// Always true: tiered_shard's invariants; every page is free, used or cached; it takes a batcher only when no page of its range
//   is being moved for a former shard, and moves pages up only when no step of a former batcher runs.
// Limits: limits::kv_pages_max pages, limits::kv_leases_max leases; refused with no_memory beyond. Of tiers: tiered_shard's.
// If it fails: its successor starts with every page free, no prefix, nothing below; its sequences read their prompts again.
#pragma once
#include <optional>

#include "actors/company.hpp"
#include "actors/support/runtime_context.hpp"
#include "memory/tiered_shard.hpp"

namespace troupe {

struct kv_shard_state {
  ~kv_shard_state();

  const char* name = "kv_shard";
  context_ptr context;
  std::optional<tiered_shard> memory;
  batcher_actor owner;            // that asked last
  std::optional<take_shard> take; // waits until no page is being moved for a former shard
  company_ptr peers;
  std::uint32_t transfer = 0; // incarnation that it talks to; 0: none
  bool settled = false;
  std::uint32_t compute = 0;
  std::uint64_t takes = 0;
  pages_changed told;     // last
  kv_shard_stats counted; // what the counters have of it
  tier_stats tiers_counted;
  int waiting = 0; // requests, that the overlap knows of
};

kv_shard_actor::behavior_type kv_shard(kv_shard_actor::stateful_pointer<kv_shard_state> self, context_ptr context,
                                       tiered_shard_config config);

} // namespace troupe
