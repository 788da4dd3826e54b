// What the batcher is asked for, and what it wants done: plain values on either side of batch_schedule.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/sampling.hpp"
#include "memory/page_messages.hpp"
#include "model/backend.hpp"

namespace troupe {

// One run of one request. After a crash its session submits it again, with the tokens that were generated so far behind the
// prompt and a higher generation; since sampling is keyed by the position, the run goes on as if nothing had happened.
struct batch_request {
  request_id id;
  std::shared_ptr<const std::vector<token_id>> tokens; // prompt, then what was generated so far; at least 1
  int prompt_length = 0;                  // of them; 1 .. tokens->size()
  int max_new_tokens = 0;                 // of the whole answer, those in `tokens` included; 0: prefill and publish only
  int context_tokens = 0;                 // prompt and answer together never exceed it, unless there is a window
  attention_window window = {};           // bounded: what it hides is let go, and the sequence goes on
  int ring_pages = 0;                     // then: pages behind the sinks that it holds at most; more than window.recent_pages
  int budget_tokens = 0;                  // whole pages; once as many are held, some are evicted and the sequence goes on; 0: none
  int keep_percent = 70;                  // of them that then stay
  std::vector<token_id> end_tokens;       // at most limits::end_tokens_max
  bool ignore_eos = false;                // go on past end_tokens (they then count as any token)
  std::shared_ptr<const sampling_params> sampling;
  int priority = 0;                       // higher first; -limits::priority_max .. limits::priority_max
  std::string tenant;
  std::uint64_t salt = 0;                 // of the tenant, derived by the server; pages are shared under equal salts only
  std::optional<std::uint64_t> affinity;  // requests of equal affinity prefer one shard; absent: where their beginning lies
  bool pin = false;                       // keep the prompt's pages longer than others

  int keep_tokens() const noexcept { return std::max(1, budget_tokens * keep_percent / 100); }
};

struct batch_usage {
  int prompt_tokens = 0;
  int cached_tokens = 0;     // of the prompt, found in the prefix cache when the request was first admitted
  int completion_tokens = 0; // the end token included
  int dropped_tokens = 0;    // of prompt and answer, that a window hides by now or that were evicted
};

enum class sequence_end {
  end_token, // one of end_tokens was chosen
  length,    // max_new_tokens, the context, or what a shard can hold is used up
  cancelled,
};

// Tokens in order and without gap: the first stands at `position` (the prompt starts at 0). An end token is not among them.
struct tokens_generated {
  request_id id;
  int position = 0;
  std::vector<sampled_token> tokens;
  bool first = false;        // of this run; then `usage` tells the prompt's size and what was cached
  batch_usage usage;         // so far
};

// Exactly one of these two ends a request.
struct request_finished {
  request_id id;
  sequence_end reason = sequence_end::length;
  token_id end_token = -1;   // where reason is end_token: which; it is counted, but not part of the text
  batch_usage usage;
};

struct request_failed {
  request_id id;
  error fault;
  batch_usage usage;
};

struct run_step {
  std::shared_ptr<const step_plan> plan;
};

// What the batcher's actor carries out, in this order: messages to shard `shard` of the current incarnation, to the compute
// stream, and to the sessions.
using batch_action = std::variant<reserve_pages, grow_pages, publish_pages, release_pages, run_step, tokens_generated,
                                  request_finished, request_failed>;
using batch_actions = std::vector<batch_action>;

} // namespace troupe
