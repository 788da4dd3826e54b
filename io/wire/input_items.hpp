// Responses input items, read into chat messages. Only wire/*.cpp include this.
#pragma once
#include <vector>

#include "base/chat.hpp"
#include "io/wire/json_fields.hpp"

namespace troupe {

// `input`: a string, or an array of message, function_call, function_call_output and reasoning items.
void read_input(json_fields& fields, std::vector<chat_message>& out);

} // namespace troupe
