// The built-in pages, compiled into the binary. Immutable; any thread.
#pragma once
#include <string_view>

namespace troupe {

struct web_file {
  std::string_view path; // as requested
  std::string_view content_type;
  std::string_view body;
};

// Null where there is no such page. "/" is the chat page.
const web_file* find_web_file(std::string_view path) noexcept;

} // namespace troupe
