// What every actor may read: the served model's text side, the defaults, and the things that are passed in.
//
// Immutable after the start and shared by pointer; only metrics_registry's atomics change. Any thread.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "actors/metrics/metrics_registry.hpp"
#include "actors/session/answer_stream.hpp"
#include "actors/session/sampling_defaults.hpp"
#include "base/clock.hpp"
#include "base/keyed_hash.hpp"
#include "base/log.hpp"
#include "io/edge.hpp"
#include "model/chat_template.hpp"
#include "model/tokenizer.hpp"

namespace troupe {

struct history_choice {
  std::size_t bytes_max = 0; // of one worker
  hash_key key;              // what conversations are named with; shown to nobody
};

struct runtime_context {
  std::shared_ptr<const tokenizer> tokens;
  std::optional<chat_template> chat; // absent: the model serves raw prompts only
  served_model model;
  sampling_defaults defaults;
  std::vector<token_id> end_tokens;
  answer_tokens marks;
  int context_tokens = 0;
  overflow_policy overflow = overflow_policy::refuse; // where a request does not say
  int sink_tokens = 0;   // that a window keeps of the beginning
  int keep_percent = 70; // of a context's tokens that stay when it is compressed
  std::optional<history_choice> history; // absent: every chat is rendered from the start
  std::uint64_t secret = 0;            // of this process; salts of tenants are derived from it
  std::uint64_t call_key = 0;          // of tool calls' ids, which clients see: from these nothing else may follow
  std::function<std::uint64_t()> draw; // any thread; for requests without a seed
  clock_fn clock;
  log_sink log;
  bool check_invariants = false; // after each handler: debug builds and tests
  std::shared_ptr<metrics_registry> metrics;
};

using context_ptr = std::shared_ptr<const runtime_context>;

} // namespace troupe
