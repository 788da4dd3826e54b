// Reads what a model writes between <tool_call> and </tool_call>: {"name": "...", "arguments": {...}}.
//
// Strict JSON, depth at most limits::json_depth_max. The arguments come back as the model wrote them, byte for byte.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

struct parsed_tool_call {
  std::string name;
  std::string arguments; // a JSON object
};

// Nothing where the text is no JSON object, has no name, or its arguments are no object (nor a string that holds one).
std::optional<parsed_tool_call> parse_tool_call(std::string_view text);

} // namespace troupe
