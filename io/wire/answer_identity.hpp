// What every answer says of itself, and the pieces of JSON that several wire formats share. Plain functions; any thread.
#pragma once
#include <cstdint>
#include <string>

#include "io/edge.hpp"
#include "io/wire/json_writer.hpp"

namespace troupe {

struct answer_identity {
  std::string id;
  std::string model;
  std::int64_t created = 0; // unix seconds
};

std::string_view finish_reason_name(finish_reason reason) noexcept;

// {"prompt_tokens","completion_tokens","total_tokens","prompt_tokens_details","completion_tokens_details"}, and our own
// "dropped_tokens" where the context had no room for some
void write_usage(json_writer& w, const token_usage& usage);
// {"token","logprob","bytes","top_logprobs"}
void write_logprob(json_writer& w, const text_logprob& value);

} // namespace troupe
