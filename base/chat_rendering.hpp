// What is said about a conversation that was rendered to tokens, message by message.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace troupe {

// What other messages decide about how one message reads; everything else is its own text and place.
enum class message_form : std::uint8_t {
  plain,
  thinking, // an answer that keeps its think block
  joined,   // a tool's result that shares its turn with the next message's
};

// A place between two messages where rendering can be taken up again. Everything before it is settled but for the template's
// own words since the last control token: a tokeniser must see them together with what follows.
struct message_end {
  std::size_t messages = 0; // that stand before this place
  std::size_t tokens = 0;   // of the settled part
  std::string open_text;    // the words that are not tokens yet
};

} // namespace troupe
