// Turns requests into the model's input: renders chats, encodes raw prompts. Chats that go on from a beginning that was
// prepared before are rendered from there (memory/token_history.hpp), with the tokens of a rendering from the start.
//
// Owns: the history of what it prepared, shown in the metrics; a new preparer knows nothing. Promises: prepare() never throws;
// a defect on the way is a fault of this prompt alone (errc::internal, logged), and empties the history. One thread.
#pragma once
#include <optional>

#include "actors/support/runtime_context.hpp"
#include "actors/worker/prepared_prompt.hpp"
#include "memory/token_history.hpp"

namespace troupe {

// Cheap checks that need no tokenizer: counts, sizes, and that exactly one of messages, prompt and prompt_tokens is there.
result<void> check_request(const generation_request& request);

class prompt_preparer {
public:
  explicit prompt_preparer(context_ptr context);
  ~prompt_preparer();
  prompt_preparer(const prompt_preparer&) = delete;
  prompt_preparer& operator=(const prompt_preparer&) = delete;

  prepared_prompt prepare(const generation_request& request);

  void check_invariants() const;

private:
  prepared_prompt render_chat(const generation_request& request);
  result<rendered_prompt> render_on(const generation_request& request, const render_options& options);
  prepared_prompt start_again(error fault);
  void show_history() noexcept;

  context_ptr context_;
  std::optional<token_history> history_; // absent: switched off, or no chats are served
  token_history_stats shown_;            // in the metrics, as our share
};

} // namespace troupe
