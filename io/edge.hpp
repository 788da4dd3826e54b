// The border between the edge (sockets, wire formats) and the runtime (actors). The edge knows nothing behind it; the runtime
// knows nothing of HTTP. Tests put a fake on either side.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/chat.hpp"
#include "base/ids.hpp"
#include "base/random.hpp"
#include "base/result.hpp"
#include "base/sampling.hpp"

namespace troupe {

// Sampling as a client asks for it; what is absent comes from the model's defaults.
struct sampling_request {
  std::optional<float> temperature, top_p, min_p, repetition_penalty, presence_penalty, frequency_penalty;
  std::optional<int> top_k;
  std::optional<std::uint64_t> seed;             // absent: drawn by the runtime
  std::vector<std::pair<token_id, float>> logit_bias;
  bool logprobs = false;
  int top_logprobs = 0;
};

// What happens when prompt and answer outgrow the context.
enum class overflow_policy {
  refuse, // the prompt is refused, the answer ends
  window,   // the middle is let go: the first tokens and the last ones stay
  compress, // the tokens that the conversation needs least are evicted
};

struct generation_request {
  // Either a conversation or a raw prompt (text or ids).
  std::vector<chat_message> messages;
  std::vector<std::string> tools;                // JSON text each
  std::optional<std::string> prompt;
  std::vector<token_id> prompt_tokens;
  sampling_request sampling;
  std::optional<int> max_tokens;                 // absent: as much as the context holds; 0: prefill only
  std::vector<std::string> stop;
  bool ignore_eos = false;
  std::optional<bool> enable_thinking;
  int priority = 0;                              // higher first
  std::optional<overflow_policy> overflow;       // absent: the server's
  std::optional<int> context_tokens;             // of this request, where smaller than the server's
  bool pin_prompt = false;                       // keep what was computed of it longer than others
  std::string tenant;                            // from the key; empty: the anonymous tenant
};

struct token_usage {
  int prompt_tokens = 0;
  int cached_tokens = 0;    // of the prompt, found in the prefix cache
  int completion_tokens = 0;
  int reasoning_tokens = 0; // of the completion
  int dropped_tokens = 0;   // that the context had no room for: of both, and those that a window took off the prompt before
};

struct text_logprob {
  std::string token;   // the token's bytes; may be part of a UTF-8 character
  float logprob = 0;
  std::vector<std::pair<std::string, float>> top;
};

// What a request produces, in this order: one started, any number of deltas, then exactly one finished or failed.
struct generation_started { int prompt_tokens = 0; int cached_tokens = 0; };
struct text_delta { std::string text; std::vector<text_logprob> logprobs; }; // whole UTF-8 characters
struct reasoning_delta { std::string text; };
struct tool_call_made { tool_call call; };       // complete and valid JSON arguments
enum class finish_reason { stop, length, tool_calls, cancelled };
struct generation_finished { finish_reason reason = finish_reason::stop; token_usage usage; };
struct generation_failed { error fault; token_usage usage; };
using generation_event = std::variant<generation_started, text_delta, reasoning_delta, tool_call_made, generation_finished,
                                      generation_failed>;

// Where a request's events go. push is called from any thread, never blocks, never throws.
class event_sink {
public:
  virtual ~event_sink() = default;
  virtual void push(generation_event event) noexcept = 0;
};

struct served_model {
  std::string name;
  int context_tokens = 0;
  std::string chat_template;
  std::int64_t created = 0; // unix seconds
};

enum class health_state { starting, ready, draining, failing };

// The seed of a choice: the first one's is the request's.
constexpr std::uint64_t choice_seed(std::uint64_t seed, std::uint64_t choice) noexcept {
  return choice == 0 ? seed : random_at(~seed, choice);
}

// The runtime as the edge sees it. Every call may come from any thread and returns without waiting.
class edge_port {
public:
  virtual ~edge_port() = default;
  // Refuses with queue_full, shutting_down or unavailable before anything is tokenised. Errors found later come as
  // generation_failed.
  virtual result<std::uint64_t> submit(generation_request request, std::shared_ptr<event_sink> sink) = 0;
  // Several answers to one request, one a sink, each with a number of its own; all are accepted or none. The first is what
  // submit() would answer, the others have seeds of their own (choice_seed) and begin when its prompt is computed.
  virtual result<std::vector<std::uint64_t>> submit_choices(generation_request request,
                                                            std::vector<std::shared_ptr<event_sink>> sinks) = 0;
  virtual void cancel(std::uint64_t request) noexcept = 0; // idempotent; the sink still gets its one end event
  virtual served_model model() const = 0;
  virtual health_state health(std::string& why) const = 0;
  virtual std::string metrics_text() const = 0; // Prometheus text format
};

} // namespace troupe
