// Names every beginning of a conversation: equal keys stand for equal tenants, tools, messages and forms (base/keyed_hash.hpp
// says with what certainty), in all that a chat template can show of them. Left out is what none shows: the ids of tool calls.
//
// Pure function; any thread. Time: the conversation's bytes, at several GB/s.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/chat.hpp"
#include "base/chat_rendering.hpp"
#include "base/keyed_hash.hpp"

namespace troupe {

using conversation_key = hash_value;

struct conversation_view {
  std::string_view tenant;
  std::span<const std::string> tools;
  std::span<const chat_message> messages;
  std::span<const message_form> forms; // one a message
};

// One a message: of the conversation up to it.
std::vector<conversation_key> keys_of(const hash_key& key, const conversation_view& conversation);

} // namespace troupe
