#include "model/tokenizer_cuts.hpp"

#include "model/unicode.hpp"

namespace troupe {
namespace {

// The whole character that ends at `end`, if it stands whole in [begin, end).
unicode::utf8_char character_before(const char* begin, const char* end) noexcept {
  const char* p = end - 1;
  while (p > begin && end - p < 4 && (static_cast<unsigned char>(*p) & 0xC0) == 0x80)
    --p;
  const auto c = unicode::decode_utf8(p, end);
  return c.bytes == end - p ? c : unicode::utf8_char{};
}

} // namespace

void cut_table::add(std::string_view bytes) {
  const char* const begin = bytes.data();
  const char* const end = begin + bytes.size();
  for (const char* p = begin + 1; p < end; ++p) {
    const auto last = static_cast<unsigned char>(p[-1]), first = static_cast<unsigned char>(*p);
    if ((first & 0xC0) == 0x80)
      continue; // within a character: never a place to cut
    const auto left = character_before(begin, p);
    const auto right = unicode::decode_utf8(p, end);
    if (left.valid && right.valid)
      set(characters_, hash_of(left.code, right.code));
    else
      set(bytes_, byte_pair(last, first));
  }
}

void cut_table::add_dropped(unsigned char byte) {
  for (unsigned other = 0; other < 256; ++other) {
    set(bytes_, byte_pair(byte, static_cast<unsigned char>(other)));
    set(bytes_, byte_pair(static_cast<unsigned char>(other), byte));
  }
}

} // namespace troupe
