// POST /v1/responses and the socket's response.create: JSON in, the parsed request out.
//
// Input items become chat messages: reasoning, an assistant's text and its function calls that stand together are one
// assistant message, as the chat template knows them. Unknown fields are ignored, unknown kinds of items refused. Pure
// functions; any thread.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/edge.hpp"
#include "io/wire/http_status.hpp"

namespace troupe {

// What a response object repeats of its request.
struct response_echo {
  std::optional<std::string> instructions;
  std::string previous_response_id; // empty: none
  std::optional<int> max_output_tokens;
  std::optional<double> temperature, top_p;
  std::string effort; // empty: none
  std::string tools = "[]";
  std::string metadata = "{}";
  std::string tool_choice = "auto";
  std::string truncation = "disabled";
  bool parallel_tool_calls = true;
  bool store = true;
  bool prefill_only = false; // the prompt is read, nothing generated: that is complete
};

struct responses_request {
  generation_request generation; // without messages
  std::vector<chat_message> input;
  response_echo echo;
  std::string model;     // empty: whichever is served
  std::string stream_id; // the socket's lane; empty: the default one
  bool stream = false;
};

// On a fault `out` is unspecified, but for stream_id, which a socket's error event repeats.
std::optional<wire_fault> parse_responses_request(std::string_view json, responses_request& out);

// A client event of the socket, before it is known which.
struct socket_event {
  std::string type;
  std::string stream_id;
  std::string response_id;          // response.cancel
  std::string previous_response_id; // response.steer
  std::string input = "null";       // response.steer's, as JSON
};
std::optional<wire_fault> parse_socket_event(std::string_view json, socket_event& out);

// Lanes are named by 1 to 256 of A-Z a-z 0-9 _ . -
bool valid_stream_id(std::string_view id) noexcept;

} // namespace troupe
