// Reads conversations from JSON for tests: OpenAI chat bodies and the golden cases.
#pragma once
#include <simdjson.h>
#include <string>
#include <vector>

#include "base/chat.hpp"

namespace troupe::testing {

// `messages` as OpenAI's chat API has them; content parts are joined, null is empty, developer is system.
std::vector<chat_message> read_messages(simdjson::dom::array messages);

} // namespace troupe::testing
