// POST /v1/completions: a raw prompt, as text or token ids, and its text_completion answer. Pure functions; any thread.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "io/http/answer.hpp"
#include "io/wire/answer_identity.hpp"

namespace troupe {

struct completion_request {
  generation_request generation;
  std::string model; // empty: whichever is served
  bool stream = false;
  bool include_usage = false;
};

// On a fault `out` is unspecified.
std::optional<wire_fault> parse_completion_request(std::string_view json, completion_request& out);

struct completion_answer_options {
  bool stream = false;
  bool include_usage = false;
};

std::unique_ptr<body_encoder> make_completion_encoder(answer_identity identity, completion_answer_options options);

} // namespace troupe
