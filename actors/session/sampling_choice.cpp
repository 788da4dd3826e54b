#include "actors/session/sampling_choice.hpp"

#include <cmath>
#include <string>

#include "config/limits.hpp"

namespace troupe {

namespace {

struct range {
  const char* name;
  float low;
  float high;
};

std::string text_of(float value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.')
    text.pop_back();
  return text;
}

// Also refuses NaN.
result<void> take(float& field, const std::optional<float>& asked, const range& r) {
  if (!asked)
    return {};
  if (!(*asked >= r.low && *asked <= r.high))
    return fail(errc::invalid_argument, std::string(r.name) + " is " + text_of(*asked) + "; it must lie within " +
                                            text_of(r.low) + " and " + text_of(r.high));
  field = *asked;
  return {};
}

} // namespace

result<sampling_params> choose_sampling(const sampling_request& request, const sampling_params& defaults, int vocabulary,
                                        std::uint64_t drawn) {
  constexpr float repetition_penalty_min = 0.01f;
  constexpr float repetition_penalty_max = 10.0f;
  sampling_params out = defaults;
  if (auto r = take(out.temperature, request.temperature, {"temperature", 0, limits::temperature_max}); !r)
    return r.fault();
  if (auto r = take(out.top_p, request.top_p, {"top_p", 0, 1}); !r)
    return r.fault();
  if (auto r = take(out.min_p, request.min_p, {"min_p", 0, 1}); !r)
    return r.fault();
  if (auto r = take(out.repetition_penalty, request.repetition_penalty,
                    {"repetition_penalty", repetition_penalty_min, repetition_penalty_max});
      !r)
    return r.fault();
  if (auto r =
          take(out.presence_penalty, request.presence_penalty, {"presence_penalty", -limits::penalty_max, limits::penalty_max});
      !r)
    return r.fault();
  if (auto r = take(out.frequency_penalty, request.frequency_penalty,
                    {"frequency_penalty", -limits::penalty_max, limits::penalty_max});
      !r)
    return r.fault();
  if (request.top_k) {
    if (*request.top_k < -1)
      return fail(errc::invalid_argument, "top_k is " + std::to_string(*request.top_k) + "; 0 and -1 switch it off");
    out.top_k = *request.top_k < 0 ? 0 : *request.top_k;
  }
  // The ends of the ranges mean "only the best token".
  if (out.top_p == 0.0f || out.min_p == 1.0f) {
    out.top_p = 1.0f;
    out.min_p = 0.0f;
    out.top_k = 1;
  }

  if (request.logit_bias.size() > limits::logit_bias_max)
    return fail(errc::too_large, "logit_bias has " + std::to_string(request.logit_bias.size()) + " entries; at most " +
                                     std::to_string(limits::logit_bias_max));
  for (const auto& [token, bias] : request.logit_bias)
    if (token < 0 || token >= vocabulary || !std::isfinite(bias))
      return fail(errc::invalid_argument, "logit_bias names token " + std::to_string(token) + " of a vocabulary of " +
                                              std::to_string(vocabulary) + ", or its bias is not finite");
  out.logit_bias = request.logit_bias;

  if (request.top_logprobs < 0 || request.top_logprobs > limits::top_logprobs_max)
    return fail(errc::invalid_argument, "top_logprobs is " + std::to_string(request.top_logprobs) +
                                            "; it must lie within 0 and " + std::to_string(limits::top_logprobs_max));
  out.logprobs = request.logprobs;
  out.top_logprobs = request.logprobs ? request.top_logprobs : 0;
  out.seed = request.seed.value_or(drawn);
  return out;
}

} // namespace troupe
