// How the next token is chosen. Every field has the value that switches it off as its default, but for temperature.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.hpp"

namespace troupe {

struct sampling_params {
  float temperature = 1.0f;        // 0: greedy
  int top_k = 0;                   // 0: all
  float top_p = 1.0f;              // (0, 1]
  float min_p = 0.0f;              // [0, 1)
  float repetition_penalty = 1.0f; // > 0; over prompt and answer (Keskar et al. 2019)
  float presence_penalty = 0.0f;   // [-2, 2]; over the answer, as OpenAI defines it
  float frequency_penalty = 0.0f;  // [-2, 2]; over the answer
  std::vector<std::pair<token_id, float>> logit_bias;
  std::uint64_t seed = 0;
  bool logprobs = false;           // report the chosen token's natural-log probability
  int top_logprobs = 0;            // and that many best alternatives

  bool penalises() const noexcept {
    return repetition_penalty != 1.0f || presence_penalty != 0.0f || frequency_penalty != 0.0f;
  }
};

// How often a token stands in a sequence so far; only sent where a penalty is on.
struct token_count {
  token_id token = -1;
  std::uint32_t in_prompt = 0;
  std::uint32_t in_answer = 0;
};

struct token_logprob {
  token_id token = -1;
  float logprob = 0; // natural log, of the softmax before temperature and truncation
};

struct sampled_token {
  token_id token = -1;
  float logprob = 0;                // set where sampling_params::logprobs
  std::vector<token_logprob> top;   // best first, at most top_logprobs
};

} // namespace troupe
