// Turns a request into the model's input: renders the chat or encodes the raw prompt. Pure functions; they run on a worker.
#pragma once
#include <optional>
#include <vector>

#include "actors/support/runtime_context.hpp"

namespace troupe {

struct prepared_prompt {
  std::optional<error> fault;   // then the rest is empty
  std::vector<token_id> tokens; // at least 1
  bool thinking_open = false;   // the answer starts inside a think block
};

// Cheap checks that need no tokenizer: counts, sizes, and that exactly one of messages, prompt and prompt_tokens is there.
result<void> check_request(const generation_request& request);

// Never throws: a defect on the way is a fault of this prompt alone (errc::internal, logged).
prepared_prompt render_prompt(const runtime_context& context, const generation_request& request);

} // namespace troupe
