#include "io/wire/json_writer.hpp"

#include <charconv>
#include <cmath>

namespace troupe {
namespace {

unsigned char byte_at(std::string_view text, std::size_t i) noexcept {
  return static_cast<unsigned char>(text[i]);
}

bool continuation(std::string_view text, std::size_t i) noexcept {
  return i < text.size() && (byte_at(text, i) & 0xc0u) == 0x80u;
}

void append_escaped(std::string& out, unsigned char c) {
  switch (c) {
  case '"': out += "\\\""; return;
  case '\\': out += "\\\\"; return;
  case '\n': out += "\\n"; return;
  case '\r': out += "\\r"; return;
  case '\t': out += "\\t"; return;
  default: break;
  }
  static constexpr char hex[] = "0123456789abcdef";
  out += "\\u00";
  out += hex[c >> 4];
  out += hex[c & 15];
}

} // namespace

std::size_t utf8_length(std::string_view text) noexcept {
  if (text.empty())
    return 0;
  const unsigned char first = byte_at(text, 0);
  if (first < 0x80)
    return 1;
  if (first < 0xc2 || first > 0xf4 || !continuation(text, 1))
    return 0;
  if (first < 0xe0)
    return 2;
  const unsigned char second = byte_at(text, 1);
  if (first < 0xf0) {
    // Neither overlong nor a surrogate.
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f))
      return 0;
    return continuation(text, 2) ? 3 : 0;
  }
  if ((first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f))
    return 0;
  return continuation(text, 2) && continuation(text, 3) ? 4 : 0;
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  std::size_t plain_from = 0;
  std::size_t i = 0;
  const auto flush = [&] { out.append(text, plain_from, i - plain_from); };
  while (i < text.size()) {
    const unsigned char c = byte_at(text, i);
    if (c >= 0x80) {
      const std::size_t length = utf8_length(text.substr(i));
      if (length != 0) {
        i += length;
        continue;
      }
      flush();
      out += "\\ufffd";
    } else if (c < 0x20 || c == '"' || c == '\\' || c == 0x7f) {
      flush();
      append_escaped(out, c);
    } else {
      ++i;
      continue;
    }
    plain_from = ++i;
  }
  flush();
  out += '"';
}

void append_json_number(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof digits, value);
  out.append(digits, end.ptr);
}

} // namespace troupe
