// POST /v1/chat/completions: JSON in, the runtime's request and the wish for its answer out.
//
// Every known field's type and range is checked and a fault names the field; unknown fields are ignored, as clients of
// other servers send many. Pure functions; any thread.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "io/edge.hpp"
#include "io/wire/http_status.hpp"

namespace troupe {

struct chat_request {
  generation_request generation;
  std::string model; // empty: whichever is served
  int choices = 1; // answers (n)
  bool stream = false;
  bool include_usage = false;
};

// On a fault `out` is unspecified.
std::optional<wire_fault> parse_chat_request(std::string_view json, chat_request& out);

} // namespace troupe
