#include "tests/support/chat_json.hpp"

namespace troupe::testing {
namespace {

std::string text_at(simdjson::dom::element object, std::string_view key) {
  std::string_view text;
  return object[key].get(text) == simdjson::SUCCESS ? std::string(text) : std::string();
}

std::string content_of(simdjson::dom::element message) {
  simdjson::dom::array parts;
  if (message["content"].get(parts) != simdjson::SUCCESS)
    return text_at(message, "content");
  std::string joined;
  for (simdjson::dom::element part : parts)
    joined += text_at(part, "text");
  return joined;
}

} // namespace

std::vector<chat_message> read_messages(simdjson::dom::array messages) {
  std::vector<chat_message> out;
  for (simdjson::dom::element m : messages) {
    chat_message message;
    message.role = text_at(m, "role") == "developer" ? "system" : text_at(m, "role");
    message.content = content_of(m);
    message.reasoning = text_at(m, "reasoning_content");
    message.tool_call_id = text_at(m, "tool_call_id");
    simdjson::dom::array calls;
    if (m["tool_calls"].get(calls) == simdjson::SUCCESS)
      for (simdjson::dom::element c : calls)
        message.tool_calls.push_back(
            {text_at(c, "id"), text_at(c["function"].value(), "name"), text_at(c["function"].value(), "arguments")});
    out.push_back(std::move(message));
  }
  return out;
}

} // namespace troupe::testing
