// Owns: through batch_schedule, which requests wait, which run where, and the next step; and which session hears of which.
// Accepts: submit_request, cancel_request, session_lost, shard_taken, page_answer, step_ended, peers_changed.
// Tells: kv_shards, the compute stream, the submitting sessions; metrics (batch_changed).
// Always true: batch_schedule's invariants; a session hears of its run until its one end.
// Limits: waiting_max and running_max of batch_schedule_config; queue_full beyond.
// If it fails: its successor starts empty and takes the shards; sessions submit again and go on with the next token.
#pragma once
#include <optional>
#include <unordered_map>

#include "actors/batcher/batch_schedule.hpp"
#include "actors/company.hpp"
#include "actors/support/runtime_context.hpp"

namespace troupe {

struct batcher_state {
  struct listener {
    session_actor session;
    request_id id;
    steady_time since;
    bool admitted = false;
  };

  const char* name = "batcher";
  context_ptr context;
  std::optional<batch_schedule> schedule;
  company_ptr peers;
  std::vector<std::uint32_t> shards;                     // incarnations that are ready or being taken; 0: none
  std::uint32_t compute = 0;                             // incarnation that may get steps; 0: none
  std::unordered_map<std::uint64_t, listener> listeners; // by request number
  batch_changed told{UINT32_MAX, UINT32_MAX}; // nothing yet
  batch_schedule_stats counted;               // in the metrics
};

batcher_actor::behavior_type batcher(batcher_actor::stateful_pointer<batcher_state> self, context_ptr context,
                                     batch_schedule_config config);

} // namespace troupe
