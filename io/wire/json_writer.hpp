// Writes JSON text into a string the caller owns.
//
// Promises: commas and quotes are placed right for any sequence of matching begin/end calls; what it writes is valid UTF-8
// even when the input is not (bad bytes become U+FFFD). It does not indent. No thread of its own, no allocation but the
// string's.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

// `text` as a JSON string with its quotes.
void append_json_string(std::string& out, std::string_view text);
// Shortest decimal that reads back as the same value; null for what JSON cannot say.
void append_json_number(std::string& out, double value);

// Length of the well-formed UTF-8 character that starts at text[0], or 0 when there is none.
std::size_t utf8_length(std::string_view text) noexcept;

class json_writer {
public:
  explicit json_writer(std::string& out) : out_(out) {}

  json_writer& begin_object() { return open('{'); }
  json_writer& end_object() { return close('}'); }
  json_writer& begin_array() { return open('['); }
  json_writer& end_array() { return close(']'); }

  json_writer& key(std::string_view name) {
    separate();
    append_json_string(out_, name);
    out_ += ':';
    after_key_ = true;
    return *this;
  }

  json_writer& string(std::string_view text) {
    separate();
    append_json_string(out_, text);
    return *this;
  }
  json_writer& integer(std::int64_t value) { return raw(std::to_string(value)); }
  json_writer& number(double value) {
    separate();
    append_json_number(out_, value);
    return *this;
  }
  json_writer& boolean(bool value) { return raw(value ? "true" : "false"); }
  json_writer& null() { return raw("null"); }
  // Text that is JSON already.
  json_writer& raw(std::string_view json) {
    separate();
    out_ += json;
    return *this;
  }

  json_writer& string(std::string_view name, std::string_view text) { return key(name).string(text); }
  json_writer& integer(std::string_view name, std::int64_t value) { return key(name).integer(value); }
  json_writer& number(std::string_view name, double value) { return key(name).number(value); }
  json_writer& boolean(std::string_view name, bool value) { return key(name).boolean(value); }
  json_writer& null(std::string_view name) { return key(name).null(); }
  json_writer& raw(std::string_view name, std::string_view json) { return key(name).raw(json); }

private:
  json_writer& open(char c) {
    separate();
    out_ += c;
    needs_comma_ = false;
    return *this;
  }
  json_writer& close(char c) {
    out_ += c;
    needs_comma_ = true;
    return *this;
  }
  void separate() {
    if (needs_comma_ && !after_key_)
      out_ += ',';
    needs_comma_ = true;
    after_key_ = false;
  }

  std::string& out_;
  bool needs_comma_ = false;
  bool after_key_ = false;
};

} // namespace troupe
