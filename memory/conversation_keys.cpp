#include "memory/conversation_keys.hpp"

#include "base/check.hpp"

namespace troupe {
namespace {

// All roles that a template takes. The others share a number: what cannot be rendered is never remembered.
std::uint64_t number_of(std::string_view role) noexcept {
  return role == "user" ? 1 : role == "assistant" ? 2 : role == "system" ? 3 : role == "tool" ? 4 : 0;
}

// How many texts follow and what each is follows from the first number, so that no two messages read the same.
void add(keyed_hasher& hasher, const chat_message& message, message_form form) {
  const std::uint64_t has_reasoning = message.reasoning.empty() ? 0 : 1;
  hasher.add(number_of(message.role) | static_cast<std::uint64_t>(form) << 4 | has_reasoning << 8 |
             std::uint64_t{message.tool_calls.size()} << 16);
  hasher.add(message.content);
  if (has_reasoning != 0)
    hasher.add(message.reasoning);
  for (const auto& call : message.tool_calls) {
    hasher.add(call.name);
    hasher.add(call.arguments);
  }
}

} // namespace

std::vector<conversation_key> keys_of(const hash_key& key, const conversation_view& conversation) {
  TROUPE_CHECK(conversation.forms.size() == conversation.messages.size());
  keyed_hasher hasher(key);
  hasher.add(conversation.tenant);
  hasher.add(std::uint64_t{conversation.tools.size()});
  for (const auto& tool : conversation.tools)
    hasher.add(tool);
  std::vector<conversation_key> keys;
  keys.reserve(conversation.messages.size());
  for (std::size_t i = 0; i < conversation.messages.size(); ++i) {
    add(hasher, conversation.messages[i], conversation.forms[i]);
    keys.push_back(hasher.value());
  }
  return keys;
}

} // namespace troupe
