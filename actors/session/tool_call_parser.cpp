#include "actors/session/tool_call_parser.hpp"

#include <cstdint>

#include "config/limits.hpp"

namespace troupe {

namespace {

bool digit(char c) {
  return c >= '0' && c <= '9';
}

void append_utf8(std::string& out, std::uint32_t point) {
  const auto put = [&out](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (point < 0x80) {
    put(point);
  } else if (point < 0x800) {
    put(0xc0 | point >> 6);
    put(0x80 | (point & 0x3f));
  } else if (point < 0x10000) {
    put(0xe0 | point >> 12);
    put(0x80 | (point >> 6 & 0x3f));
    put(0x80 | (point & 0x3f));
  } else {
    put(0xf0 | point >> 18);
    put(0x80 | (point >> 12 & 0x3f));
    put(0x80 | (point >> 6 & 0x3f));
    put(0x80 | (point & 0x3f));
  }
}

// Walks one JSON text; every method answers false at the first byte that is no JSON and leaves the position anywhere.
class scanner {
public:
  explicit scanner(std::string_view text) : text_(text) {}

  bool at_end() {
    skip_space();
    return at_ == text_.size();
  }

  bool take(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c)
      return false;
    ++at_;
    return true;
  }

  // The value's text, without surrounding space.
  bool value(std::string_view& out, int depth) {
    skip_space();
    const auto begin = at_;
    if (!skip_value(depth))
      return false;
    out = text_.substr(begin, at_ - begin);
    return true;
  }

  bool string(std::string& out) {
    out.clear();
    if (!take('"'))
      return false;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '"')
        return true;
      if (static_cast<unsigned char>(c) < 0x20)
        return false;
      if (c != '\\')
        out.push_back(c);
      else if (!escape(out))
        return false;
    }
    return false;
  }

  // Calls member(key) with the position before each value; it must read exactly that value.
  template <class Member>
  bool object(Member member) {
    if (!take('{'))
      return false;
    if (take('}'))
      return true;
    std::string key;
    do {
      if (!string(key) || !take(':') || !member(key))
        return false;
    } while (take(','));
    return take('}');
  }

private:
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }

  bool hex4(std::uint32_t& out) {
    if (text_.size() - at_ < 4)
      return false;
    out = 0;
    for (int i = 0; i < 4; ++i) {
      const char c = text_[at_++];
      if (digit(c))
        out = out * 16 + static_cast<std::uint32_t>(c - '0');
      else if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))
        out = out * 16 + static_cast<std::uint32_t>((c | 0x20) - 'a' + 10);
      else
        return false;
    }
    return true;
  }

  bool escape(std::string& out) {
    if (at_ >= text_.size())
      return false;
    switch (text_[at_++]) {
    case '"': out.push_back('"'); return true;
    case '\\': out.push_back('\\'); return true;
    case '/': out.push_back('/'); return true;
    case 'b': out.push_back('\b'); return true;
    case 'f': out.push_back('\f'); return true;
    case 'n': out.push_back('\n'); return true;
    case 'r': out.push_back('\r'); return true;
    case 't': out.push_back('\t'); return true;
    case 'u': return unicode(out);
    default: return false;
    }
  }

  bool unicode(std::string& out) {
    std::uint32_t point = 0;
    if (!hex4(point) || (point >= 0xdc00 && point < 0xe000))
      return false;
    if (point >= 0xd800 && point < 0xdc00) {
      std::uint32_t low = 0;
      if (text_.substr(at_, 2) != "\\u")
        return false;
      at_ += 2;
      if (!hex4(low) || low < 0xdc00 || low >= 0xe000)
        return false;
      point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
    }
    append_utf8(out, point);
    return true;
  }

  bool literal(std::string_view word) {
    if (text_.substr(at_, word.size()) != word)
      return false;
    at_ += word.size();
    return true;
  }

  bool digits() {
    const auto begin = at_;
    while (at_ < text_.size() && digit(text_[at_]))
      ++at_;
    return at_ != begin;
  }

  bool number() {
    const auto peek = [this] { return at_ < text_.size() ? text_[at_] : '\0'; };
    if (peek() == '-')
      ++at_;
    if (peek() == '0')
      ++at_;
    else if (!digits())
      return false;
    if (peek() == '.' && (++at_, !digits()))
      return false;
    if (peek() == 'e' || peek() == 'E') {
      ++at_;
      if (peek() == '+' || peek() == '-')
        ++at_;
      return digits();
    }
    return true;
  }

  bool skip_array(int depth) {
    if (!take('['))
      return false;
    if (take(']'))
      return true;
    std::string_view item;
    do {
      if (!value(item, depth))
        return false;
    } while (take(','));
    return take(']');
  }

  bool skip_value(int depth) {
    if (depth <= 0 || at_ >= text_.size())
      return false;
    std::string text;
    std::string_view item;
    switch (text_[at_]) {
    case '{': return object([&](const std::string&) { return value(item, depth - 1); });
    case '[': return skip_array(depth - 1);
    case '"': return string(text);
    case 't': return literal("true");
    case 'f': return literal("false");
    case 'n': return literal("null");
    default: return number();
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

bool is_object(std::string_view json) {
  scanner s(json);
  std::string_view whole;
  return s.value(whole, limits::json_depth_max) && s.at_end() && whole.front() == '{';
}

// Some models write the arguments as a string that holds the object.
std::optional<std::string> object_text(std::string_view json) {
  if (json.front() == '{')
    return std::string(json);
  std::string inner;
  if (scanner(json).string(inner) && is_object(inner))
    return inner;
  return std::nullopt;
}

} // namespace

std::optional<parsed_tool_call> parse_tool_call(std::string_view text) {
  scanner s(text);
  std::optional<std::string> name;
  std::optional<std::string_view> arguments;
  const bool valid = s.object([&](const std::string& key) {
    if (key == "name") {
      std::string value;
      if (!s.string(value))
        return false;
      name = std::move(value);
      return true;
    }
    std::string_view value;
    if (!s.value(value, limits::json_depth_max))
      return false;
    if (key == "arguments" || key == "parameters")
      arguments = value;
    return true;
  });
  if (!valid || !s.at_end() || !name || name->empty())
    return std::nullopt;
  if (!arguments)
    return parsed_tool_call{std::move(*name), "{}"};
  auto object = object_text(*arguments);
  if (!object)
    return std::nullopt;
  return parsed_tool_call{std::move(*name), std::move(*object)};
}

} // namespace troupe
