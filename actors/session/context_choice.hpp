// What becomes of a turn that may outgrow its context. Pure functions of the prompt's tokens and of settings, so that the same turn
// is cut in the same way whatever else runs.
#pragma once
#include <vector>

#include "actors/support/runtime_context.hpp"
#include "model/attention_window.hpp"

namespace troupe {

struct context_choice {
  attention_window window; // bounded where the turn may outgrow its context and is to go on
  int ring_pages = 0;      // of batch_request
  int budget_tokens = 0;   // likewise; above 0 where the turn may outgrow its context and is to be compressed
  int dropped_tokens = 0;  // of the prompt, behind the sinks
  int max_new_tokens = 0;
};

// `wanted`: max_tokens of the request. errc::context_full where the prompt leaves no room and nothing may be dropped,
// errc::invalid_argument where the context is too small to go on in. Removes what is dropped from `prompt`.
//
// A prompt beyond its window keeps the sinks and its end, between half of the window and three quarters, and is cut at multiples
// of a quarter: so the cut stands still while a conversation grows by that much, and its turns find each other's prefixes.
result<context_choice> choose_context(overflow_policy policy, int context_tokens, int sink_tokens, std::optional<int> wanted,
                                      std::vector<token_id>& prompt);

} // namespace troupe
