// Owns: its thread, and the token history of the chats it prepared; the tokenizer and the template that it uses are immutable
// and
//   shared.
// Accepts: prepare_prompt.
// Tells: the asking session, with prompt_prepared.
// Always true: every prompt is answered, a bad one with its fault; no prompt can end the worker.
// Limits: one question a session, so in_flight's limit in all; a prompt is bounded by the edge's body limit, the history
//   by its setting.
// If it fails: sessions that wait for it ask its successor, whose history is empty: it renders from the start once more.
#pragma once
#include <optional>

#include "actors/interfaces.hpp"
#include "actors/support/runtime_context.hpp"
#include "actors/worker/prompt_preparer.hpp"

namespace troupe {

struct worker_state {
  const char* name = "worker";
  context_ptr context;
  std::optional<prompt_preparer> preparer;
};

worker_actor::behavior_type worker(worker_actor::stateful_pointer<worker_state> self, context_ptr context);

} // namespace troupe
