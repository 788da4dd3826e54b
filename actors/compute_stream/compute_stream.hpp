// Owns: a thread of its own while it lives, and the right to drive the backend.
// Accepts: run_step, await_steps.
// Tells: the asking batcher, with step_ended; the asking kv_shard, with steps_awaited, when every step before has ended.
// Always true: every step is answered with a result that fits its plan or with a classified fault; one step at a time.
// Limits: one step of a living batcher and at most one of a dead one.
// If it fails: the backend and its pages survive in backend_slot; the batcher's step counts as failed and is run again.
#pragma once
#include "actors/compute_stream/backend_slot.hpp"
#include "actors/interfaces.hpp"
#include "actors/support/runtime_context.hpp"

namespace troupe {

struct compute_stream_state {
  const char* name = "compute_stream";
  context_ptr context;
  std::shared_ptr<backend_slot> slot;
};

compute_stream_actor::behavior_type compute_stream(compute_stream_actor::stateful_pointer<compute_stream_state> self,
                                                   context_ptr context, std::shared_ptr<backend_slot> slot);

} // namespace troupe
