// A conversation as every folder sees it: the edge parses into it, the chat template renders it.
#pragma once
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

} // namespace troupe
