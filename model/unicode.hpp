// Code points: strict UTF-8 decoding and the few character classes that pre-tokenisers and NFC need.
//
// The class table is built once, on first use, from utf8proc (Unicode 15) and is read-only afterwards; any thread may read it.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::unicode {

// What stands at the front of some bytes. An ill-formed sequence has the length of its maximal subpart (Unicode 15, 3.9),
// the unit that decoders replace by one U+FFFD.
struct utf8_char {
  char32_t code = 0xFFFD;
  std::uint8_t bytes = 1;
  bool valid = false;
  bool truncated = false; // ill-formed only because the text ends here
};

// Precondition: p < end.
inline utf8_char decode_utf8(const char* p, const char* end) noexcept {
  const auto byte_at = [p](int i) { return static_cast<unsigned char>(p[i]); };
  const unsigned lead = byte_at(0);
  if (lead < 0x80)
    return {lead, 1, true, false};
  int length = 0;
  unsigned low = 0x80, high = 0xBF; // bounds of the second byte
  char32_t code = 0;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
    code = lead & 0x1F;
  } else if ((lead & 0xF0) == 0xE0) {
    length = 3;
    code = lead & 0x0F;
    if (lead == 0xE0)
      low = 0xA0;
    if (lead == 0xED)
      high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    code = lead & 0x07;
    if (lead == 0xF0)
      low = 0x90;
    if (lead == 0xF4)
      high = 0x8F;
  } else {
    return {};
  }
  const auto available = end - p;
  for (int i = 1; i < length; ++i) {
    if (i >= available)
      return {0xFFFD, static_cast<std::uint8_t>(i), false, true};
    const unsigned b = byte_at(i);
    if (b < low || b > high)
      return {0xFFFD, static_cast<std::uint8_t>(i), false, false};
    low = 0x80;
    high = 0xBF;
    code = (code << 6) | (b & 0x3F);
  }
  return {code, static_cast<std::uint8_t>(length), true, false};
}

void append_utf8(std::string& out, char32_t code);

enum char_class : std::uint8_t {
  letter = 1,      // \p{L}
  number = 2,      // \p{N}
  space = 4,       // White_Space
  nfc_suspect = 8, // has a combining class, or NFC may change it or join it to what stands before
};

// Marks and compositions that came with Unicode 10 or later. Hugging Face's NFC stands at Unicode 9 and leaves them where they
// are, as characters that neither move nor join; models were trained on that, so ours does the same.
bool is_newer_than_nfc(char32_t code) noexcept;

// Two-stage table over all code points; identical blocks are stored once, so that common scripts stay in the first-level cache.
class class_table {
public:
  static const class_table& get();
  std::uint8_t of(char32_t code) const noexcept {
    return blocks_[(static_cast<std::size_t>(index_[code >> block_bits]) << block_bits) | (code & (block_size - 1))];
  }
  std::uint8_t of_ascii(unsigned char byte) const noexcept { return blocks_[byte]; } // precondition: byte < 128

private:
  class_table();
  static constexpr unsigned block_bits = 7;
  static constexpr unsigned block_size = 1u << block_bits;
  std::array<std::uint16_t, (0x110000 >> block_bits)> index_{};
  std::vector<std::uint8_t> blocks_; // block 0 is ASCII
};

// White space as Python's str.strip() knows it: White_Space and U+001C to U+001F.
std::string_view strip(std::string_view text) noexcept;

} // namespace troupe::unicode
