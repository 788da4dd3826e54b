// GPT-2's spelling of bytes: tokens of byte-level models are written with one printable character a byte.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

// The bytes that a spelled token stands for; nothing where a character is none of the 256.
std::optional<std::string> unspell(std::string_view spelled);
std::string spell(std::string_view bytes);

} // namespace troupe
