#include "model/tokenizer_spelling.hpp"

#include <array>

#include "model/unicode.hpp"

namespace troupe {
namespace {

// Printable bytes stand for themselves, the others for U+0100 and up, in order.
struct spelling {
  std::array<char32_t, 256> code_of{};
  std::array<std::int16_t, 512> byte_of{};

  spelling() {
    byte_of.fill(-1);
    char32_t next = 256;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
      code_of[byte] = printable ? byte : next++;
      byte_of[code_of[byte]] = static_cast<std::int16_t>(byte);
    }
  }
};

const spelling& table() {
  static const spelling s;
  return s;
}

} // namespace

std::optional<std::string> unspell(std::string_view spelled) {
  const auto& t = table();
  std::string bytes;
  bytes.reserve(spelled.size());
  const char* const end = spelled.data() + spelled.size();
  for (const char* p = spelled.data(); p < end;) {
    const auto c = unicode::decode_utf8(p, end);
    if (!c.valid || c.code >= t.byte_of.size() || t.byte_of[c.code] < 0)
      return std::nullopt;
    bytes.push_back(static_cast<char>(t.byte_of[c.code]));
    p += c.bytes;
  }
  return bytes;
}

std::string spell(std::string_view bytes) {
  std::string spelled;
  for (const char byte : bytes)
    unicode::append_utf8(spelled, table().code_of[static_cast<unsigned char>(byte)]);
  return spelled;
}

} // namespace troupe
