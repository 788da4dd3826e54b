// Small helpers for bytes that came from outside.
#pragma once
#include <string>
#include <string_view>

namespace troupe {

// Only A to Z change, whatever the locale.
inline std::string ascii_lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  return out;
}

// Empties `text` and gives its memory back, which assigning an empty string does not.
inline void release_memory(std::string& text) noexcept { std::string().swap(text); }

} // namespace troupe
