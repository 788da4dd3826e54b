#include "model/chat_template_json.hpp"

#include "config/limits.hpp"
#include "model/unicode.hpp"

namespace troupe {
namespace {

void append_escaped(std::string& out, std::string_view characters) {
  constexpr std::string_view digits = "0123456789abcdef";
  for (const char c : characters) {
    switch (c) {
    case '"': out += "\\\""; break;
    case '\\': out += "\\\\"; break;
    case '\b': out += "\\b"; break;
    case '\f': out += "\\f"; break;
    case '\n': out += "\\n"; break;
    case '\r': out += "\\r"; break;
    case '\t': out += "\\t"; break;
    default:
      if (static_cast<unsigned char>(c) < 0x20) {
        out += "\\u00";
        out += digits[static_cast<unsigned char>(c) >> 4];
        out += digits[static_cast<unsigned char>(c) & 15];
      } else {
        out += c;
      }
    }
  }
}

// A recursive descent over the text; each function consumes one construct and appends it, or returns false at the fault.
class respacer {
public:
  explicit respacer(std::string_view text) : text_(text) {}

  result<std::string> run() {
    skip_space();
    if (!value(0))
      return fault();
    skip_space();
    if (at_ != text_.size()) {
      why_ = "text after the value";
      return fault();
    }
    return std::move(out_);
  }

private:
  error fault() const { return fail(errc::invalid_argument, "not valid JSON at byte " + std::to_string(at_) + ": " + why_); }

  bool refuse(const char* why) {
    why_ = why;
    return false;
  }

  char peek() const noexcept { return at_ < text_.size() ? text_[at_] : '\0'; }

  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c)
      return false;
    ++at_;
    return true;
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
      ++at_;
  }

  bool value(int depth) {
    if (depth > limits::json_depth_max)
      return refuse("nested too deeply");
    switch (peek()) {
    case '{': return members(depth, '}', true);
    case '[': return members(depth, ']', false);
    case '"': return string();
    case 't': return word("true");
    case 'f': return word("false");
    case 'n': return word("null");
    default: return number();
    }
  }

  bool word(std::string_view expected) {
    if (text_.substr(at_, expected.size()) != expected)
      return refuse("unknown word");
    at_ += expected.size();
    out_ += expected;
    return true;
  }

  // An object or an array.
  bool members(int depth, char close, bool keyed) {
    out_ += text_[at_++];
    skip_space();
    if (take(close)) {
      out_ += close;
      return true;
    }
    for (;;) {
      skip_space();
      if (keyed) {
        if (peek() != '"')
          return refuse("a key is expected");
        if (!string())
          return false;
        skip_space();
        if (!take(':'))
          return refuse("':' is expected");
        out_ += ": ";
        skip_space();
      }
      if (!value(depth + 1))
        return false;
      skip_space();
      if (take(close)) {
        out_ += close;
        return true;
      }
      if (!take(','))
        return refuse("',' or a closing bracket is expected");
      out_ += ", ";
    }
  }

  bool digits() {
    const auto begin = at_;
    while (peek() >= '0' && peek() <= '9')
      ++at_;
    return at_ > begin;
  }

  bool number() {
    const auto begin = at_;
    take('-');
    if (!take('0') && !digits())
      return refuse("a value is expected");
    if (take('.') && !digits())
      return refuse("digits are expected");
    if (take('e') || take('E')) {
      if (!take('+'))
        take('-');
      if (!digits())
        return refuse("digits are expected");
    }
    out_ += text_.substr(begin, at_ - begin);
    return true;
  }

  bool hex4(char32_t& code) {
    code = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const char c = peek();
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0)
        return refuse("four hexadecimal digits are expected");
      code = code * 16 + static_cast<char32_t>(digit);
    }
    return true;
  }

  // What follows "\u". A high surrogate takes the low one that follows it.
  bool unicode_escape() {
    char32_t code = 0;
    if (!hex4(code))
      return false;
    if (code >= 0xD800 && code <= 0xDBFF && text_.substr(at_, 2) == "\\u") {
      const auto before_second = at_;
      at_ += 2;
      char32_t low = 0;
      if (!hex4(low))
        return false;
      if (low >= 0xDC00 && low <= 0xDFFF)
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      else
        at_ = before_second;
    }
    std::string character;
    unicode::append_utf8(character, code >= 0xD800 && code <= 0xDFFF ? char32_t{0xFFFD} : code);
    append_escaped(out_, character);
    return true;
  }

  bool escape() {
    switch (peek()) {
    case '"': out_ += "\\\""; break;
    case '\\': out_ += "\\\\"; break;
    case '/': out_ += '/'; break;
    case 'b': out_ += "\\b"; break;
    case 'f': out_ += "\\f"; break;
    case 'n': out_ += "\\n"; break;
    case 'r': out_ += "\\r"; break;
    case 't': out_ += "\\t"; break;
    case 'u': ++at_; return unicode_escape();
    default: return refuse("unknown escape");
    }
    ++at_;
    return true;
  }

  bool string() {
    ++at_;
    out_ += '"';
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"') {
        ++at_;
        out_ += '"';
        return true;
      }
      if (c == '\\') {
        ++at_;
        if (!escape())
          return false;
        continue;
      }
      if (static_cast<unsigned char>(c) < 0x20)
        return refuse("a control character in a string");
      const auto character = unicode::decode_utf8(text_.data() + at_, text_.data() + text_.size());
      if (!character.valid)
        return refuse("bytes that are not UTF-8");
      out_ += text_.substr(at_, character.bytes);
      at_ += character.bytes;
    }
    return refuse("the text ends within a string");
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string out_;
  const char* why_ = "";
};

} // namespace

result<std::string> respace_json(std::string_view text) {
  return respacer(text).run();
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  append_escaped(out, text);
  return out += '"';
}

} // namespace troupe
