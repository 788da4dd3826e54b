// A conversation as every folder sees it: the edge parses into it, the chat template renders it.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace troupe {

struct tool_call {
  std::string id;        // the client's or ours; never used as a key
  std::string name;
  std::string arguments; // JSON text, inserted verbatim by the template
};

struct chat_message {
  std::string role;      // system, user, assistant or tool
  std::string content;   // UTF-8
  std::string reasoning; // assistant only; may be empty
  std::vector<tool_call> tool_calls;
  std::string tool_call_id; // tool only
};

// The bytes of all its strings.
inline std::size_t text_bytes(const chat_message& message) noexcept {
  std::size_t bytes = message.role.size() + message.content.size() + message.reasoning.size() + message.tool_call_id.size();
  for (const tool_call& call : message.tool_calls)
    bytes += call.id.size() + call.name.size() + call.arguments.size();
  return bytes;
}

} // namespace troupe
