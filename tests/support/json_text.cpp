#include "tests/support/json_text.hpp"

#include <charconv>
#include <simdjson.h>

namespace troupe::testing {

std::string json_at(std::string_view json, std::string_view pointer) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  const std::string copy(json);
  if (parser.parse(copy).get(root) != simdjson::SUCCESS)
    return "<invalid>";
  simdjson::dom::element found;
  if (root.at_pointer(pointer).get(found) != simdjson::SUCCESS)
    return "<none>";
  std::string_view text;
  return found.get(text) == simdjson::SUCCESS ? std::string(text) : simdjson::to_string(found);
}

bool valid_json(std::string_view json) {
  return json_at(json, "") != "<invalid>";
}

std::vector<std::string> json_keys(std::string_view json, std::string_view pointer) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  simdjson::dom::object object;
  const std::string copy(json);
  std::vector<std::string> keys;
  if (parser.parse(copy).get(root) != simdjson::SUCCESS || root.at_pointer(pointer).get(object) != simdjson::SUCCESS)
    return keys;
  for (const auto [key, value] : object)
    keys.emplace_back(key);
  return keys;
}

std::vector<std::string> sse_data(std::string_view stream) {
  std::vector<std::string> events;
  while (!stream.empty()) {
    const std::size_t end = stream.find("\n\n");
    std::string_view event = stream.substr(0, end);
    stream.remove_prefix(end == std::string_view::npos ? stream.size() : end + 2);
    if (const std::size_t at = event.find("data: "); at != std::string_view::npos)
      events.emplace_back(event.substr(at + 6));
  }
  return events;
}

std::string unchunked(std::string_view body) {
  std::string out;
  for (;;) {
    std::size_t size = 0;
    const auto digits = std::from_chars(body.data(), body.data() + body.size(), size, 16);
    if (digits.ec != std::errc() || size == 0)
      return out;
    body.remove_prefix(static_cast<std::size_t>(digits.ptr - body.data()) + 2);
    out += body.substr(0, size);
    body.remove_prefix(size + 2);
  }
}

} // namespace troupe::testing
