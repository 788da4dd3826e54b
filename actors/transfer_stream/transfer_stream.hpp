// Owns: a thread of its own while it lives, and the right to move pages between the device and the tiers below it.
// Accepts: move_pages, settle_moves.
// Tells: the asking kv_shard, with pages_moved and moves_settled.
// Always true: it touches only pages that it was handed, in the order in which it was; each move's end is told as it was.
// Limits: limits::tier_load_pages_max and limits::tier_write_pages_max pages a message; a shard has one message of writes and
// one
//   a load under way.
// If it fails: what lies in the tiers survives in tier_store; moves that were under way are void, and what waited for them is
//   computed.
#pragma once
#include <vector>

#include "actors/compute_stream/backend_slot.hpp"
#include "actors/interfaces.hpp"
#include "actors/support/runtime_context.hpp"
#include "memory/tier_store.hpp"

namespace troupe {

struct transfer_stream_state {
  const char* name = "transfer_stream";
  context_ptr context;
  std::shared_ptr<backend_slot> slot;
  std::shared_ptr<tier_store> store;
  std::vector<std::byte> page; // on its way
  std::string last_fault;      // logged once in a row
};

transfer_stream_actor::behavior_type transfer_stream(transfer_stream_actor::stateful_pointer<transfer_stream_state> self,
                                                     context_ptr context, std::shared_ptr<backend_slot> slot,
                                                     std::shared_ptr<tier_store> store);

} // namespace troupe
