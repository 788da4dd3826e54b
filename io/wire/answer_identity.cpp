#include "io/wire/answer_identity.hpp"

namespace troupe {
namespace {

void write_token(json_writer& w, std::string_view token, float logprob) {
  w.string("token", token).number("logprob", static_cast<double>(logprob)).key("bytes").begin_array();
  for (const char c : token)
    w.integer(static_cast<unsigned char>(c));
  w.end_array();
}

} // namespace

std::string_view finish_reason_name(finish_reason reason) noexcept {
  switch (reason) {
  case finish_reason::stop: return "stop";
  case finish_reason::length: return "length";
  case finish_reason::tool_calls: return "tool_calls";
  case finish_reason::cancelled: return "cancelled";
  }
  return "stop";
}

void write_usage(json_writer& w, const token_usage& usage) {
  w.begin_object();
  w.integer("prompt_tokens", usage.prompt_tokens).integer("completion_tokens", usage.completion_tokens);
  w.integer("total_tokens", usage.prompt_tokens + usage.completion_tokens);
  w.key("prompt_tokens_details").begin_object().integer("cached_tokens", usage.cached_tokens).end_object();
  w.key("completion_tokens_details").begin_object().integer("reasoning_tokens", usage.reasoning_tokens).end_object();
  if (usage.dropped_tokens > 0)
    w.integer("dropped_tokens", usage.dropped_tokens);
  w.end_object();
}

void write_logprob(json_writer& w, const text_logprob& value) {
  w.begin_object();
  write_token(w, value.token, value.logprob);
  w.key("top_logprobs").begin_array();
  for (const auto& [token, logprob] : value.top) {
    w.begin_object();
    write_token(w, token, logprob);
    w.end_object();
  }
  w.end_array().end_object();
}

} // namespace troupe
