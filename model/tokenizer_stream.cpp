#include "model/tokenizer.hpp"
#include "model/unicode.hpp"

namespace troupe {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

} // namespace

std::string utf8_stream::push(std::string_view bytes) {
  std::string joined;
  std::string_view text = bytes;
  if (!held_.empty()) {
    joined = held_;
    joined += bytes;
    text = joined;
  }
  std::string out;
  out.reserve(text.size());
  std::string rest;
  const char* const end = text.data() + text.size();
  for (const char* p = text.data(); p < end;) {
    const auto c = unicode::decode_utf8(p, end);
    if (c.truncated) {
      rest.assign(p, end);
      break;
    }
    out.append(c.valid ? std::string_view(p, c.bytes) : replacement);
    p += c.bytes;
  }
  held_ = std::move(rest);
  return out;
}

std::string utf8_stream::finish() {
  std::string out(held_.empty() ? std::string_view() : replacement);
  held_.clear();
  return out;
}

} // namespace troupe
