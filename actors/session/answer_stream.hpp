// Turns sampled tokens into what a client sees: text, reasoning, tool calls and log-probabilities.
//
// Owns: the part of the answer that can't be shown yet (half a UTF-8 character, the beginning of a stop string, a tool call
// that is still being written, newlines at the end of a think block). Promises: whole UTF-8 characters; stop strings never
// appear, not even in part; every token of the visible answer has its log-probability in the delta that carries its last
// character; a tool call is complete and valid JSON, and text that fails to be one comes as text. Stop strings apply to the
// visible answer, not to reasoning and tool calls.
// Limits: a tool call of limits::tool_call_bytes_max, beyond which it is text. Thread: its session's.
#pragma once
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "actors/session/stop_matcher.hpp"
#include "base/sampling.hpp"
#include "io/edge.hpp"
#include "model/tokenizer.hpp"

namespace troupe {

// The added tokens that structure an answer; -1 where the model has none.
struct answer_tokens {
  token_id think_open = -1;
  token_id think_close = -1;
  token_id tool_open = -1;
  token_id tool_close = -1;
};
answer_tokens find_answer_tokens(const tokenizer& tokens);

struct answer_rules {
  answer_tokens marks;
  bool split_thinking = false; // the model's template thinks
  bool thinking_open = false;  // the prompt ended inside a think block
  bool collect_tool_calls = false;
  bool logprobs = false;
  std::vector<std::string> stops;
  std::uint64_t call_key = 0; // makes the ids of tool calls
};

class answer_stream {
public:
  // `tokens` must outlive the stream.
  answer_stream(const tokenizer& tokens, answer_rules rules);

  // Appends what the token makes visible. false: a stop string is complete; push and finish nothing more.
  bool push(const sampled_token& token, std::vector<generation_event>& out);
  // The answer ended: appends what was held back.
  void finish(std::vector<generation_event>& out);

  bool called_tools() const noexcept { return calls_ > 0; }
  int reasoning_tokens() const noexcept { return reasoning_tokens_; }

private:
  enum class part { answer, reasoning, tool_call };
  struct waiting_logprob {
    std::size_t begin; // of the token's text within the answer's text
    std::size_t end;   // shown once the answer is shown this far
    text_logprob value;
  };

  bool push_answer(std::string text, std::vector<generation_event>& out);
  void push_reasoning(std::string text, std::vector<generation_event>& out);
  bool close_tool_call(std::string tail, std::vector<generation_event>& out);
  bool give_up_tool_call(std::string tail, std::vector<generation_event>& out);
  void show(std::string text, std::vector<generation_event>& out);
  void note_logprob(const sampled_token& token, std::string_view bytes, std::size_t begin, bool whole);
  std::vector<text_logprob> due_logprobs();
  std::string call_id() const;

  const tokenizer& tokens_;
  const answer_rules rules_;
  stop_matcher stops_;
  utf8_stream utf8_;
  part part_;
  bool drop_newlines_ = false; // the next newlines separate parts and are no text
  std::string held_newlines_;  // at the end of what was seen; dropped where the part ends here
  std::string tool_call_;
  std::size_t answer_bytes_ = 0; // of answer text taken in
  std::size_t shown_bytes_ = 0;  // of it, shown or dropped for good
  std::deque<waiting_logprob> logprobs_;
  int calls_ = 0;
  int reasoning_tokens_ = 0;
};

} // namespace troupe
