#include "model/unicode.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <utf8proc.h>

namespace troupe::unicode {
namespace {

bool is_white_space(char32_t c) noexcept {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
         c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_surrogate(char32_t c) noexcept {
  return c >= 0xD800 && c <= 0xDFFF;
}

std::uint8_t general_class(char32_t c) noexcept {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
  case UTF8PROC_CATEGORY_LU:
  case UTF8PROC_CATEGORY_LL:
  case UTF8PROC_CATEGORY_LT:
  case UTF8PROC_CATEGORY_LM:
  case UTF8PROC_CATEGORY_LO: return letter;
  case UTF8PROC_CATEGORY_ND:
  case UTF8PROC_CATEGORY_NL:
  case UTF8PROC_CATEGORY_NO: return number;
  default: return is_white_space(c) ? space : 0;
  }
}

} // namespace

class_table::class_table() {
  // Beyond these, all planes are unassigned or for private use: no class.
  constexpr char32_t assigned_end = 0x40000, tags_begin = 0xE0000, tags_end = 0xE1000;
  std::vector<std::uint8_t> classes(0x110000, 0);
  const auto mark_suspects = [&](char32_t c) {
    if (is_newer_than_nfc(c))
      return;
    const auto* property = utf8proc_get_property(static_cast<utf8proc_int32_t>(c));
    if (property->combining_class != 0)
      classes[c] |= nfc_suspect;
    if (property->decomp_seqindex == UINT16_MAX || property->decomp_type != 0)
      return;
    // A canonical decomposition: what follows its first character may join to a predecessor in text.
    std::array<utf8proc_int32_t, 8> parts{};
    int boundary = 0;
    const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts.data(),
                                               static_cast<utf8proc_ssize_t>(parts.size()), UTF8PROC_DECOMPOSE, &boundary);
    for (utf8proc_ssize_t i = 1; i < count; ++i)
      classes[static_cast<std::size_t>(parts[static_cast<std::size_t>(i)])] |= nfc_suspect;
    const auto composed =
        utf8proc_normalize_utf32(parts.data(), count, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
    if (composed != 1 || parts[0] != static_cast<utf8proc_int32_t>(c))
      classes[c] |= nfc_suspect;
  };
  const auto classify = [&](char32_t begin, char32_t end) {
    for (char32_t c = begin; c < end; ++c) {
      if (is_surrogate(c))
        continue;
      classes[c] |= general_class(c);
      mark_suspects(c);
    }
  };
  classify(0, assigned_end);
  classify(tags_begin, tags_end);
  for (char32_t vowel_or_final = 0x1161; vowel_or_final <= 0x11C2; ++vowel_or_final) // Hangul joins by rule, not by table
    classes[vowel_or_final] |= nfc_suspect;

  std::map<std::string_view, std::uint16_t> known;
  for (std::size_t block = 0; block < index_.size(); ++block) {
    const std::string_view content(reinterpret_cast<const char*>(classes.data()) + (block << block_bits), block_size);
    const auto [it, fresh] = known.try_emplace(content, static_cast<std::uint16_t>(known.size()));
    index_[block] = it->second;
    if (fresh)
      blocks_.insert(blocks_.end(), content.begin(), content.end());
  }
}

const class_table& class_table::get() {
  static const class_table table;
  return table;
}

bool is_newer_than_nfc(char32_t code) noexcept {
  struct range {
    char32_t first, last;
  };
  static constexpr range newer[] = {
      {0x7FD, 0x7FD},     {0x898, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},     {0xC3C, 0xC3C},     {0xD3B, 0xD3C},
      {0xEBA, 0xEBA},     {0x1715, 0x1715},   {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFA},   {0xA82C, 0xA82C},   {0x10D24, 0x10D27},
      {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50}, {0x10F82, 0x10F85}, {0x11070, 0x11070}, {0x1133B, 0x1133B},
      {0x1145E, 0x1145E}, {0x11839, 0x1183A}, {0x11938, 0x11938}, {0x1193D, 0x1193E}, {0x11943, 0x11943}, {0x119E0, 0x119E0},
      {0x11A34, 0x11A34}, {0x11A47, 0x11A47}, {0x11A99, 0x11A99}, {0x11D42, 0x11D42}, {0x11D44, 0x11D45}, {0x11D97, 0x11D97},
      {0x11F41, 0x11F42}, {0x16FF0, 0x16FF1}, {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF},
      {0x1E4EC, 0x1E4EF}};
  const auto* const it =
      std::lower_bound(std::begin(newer), std::end(newer), code, [](const range& r, char32_t c) { return r.last < c; });
  return it != std::end(newer) && it->first <= code;
}

void append_utf8(std::string& out, char32_t code) {
  const auto put = [&out](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | (code >> 6));
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | (code >> 12));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | (code >> 18));
    put(0x80 | ((code >> 12) & 0x3F));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

std::string_view strip(std::string_view text) noexcept {
  const auto strippable = [](char32_t c) { return is_white_space(c) || (c >= 0x1C && c <= 0x1F); };
  while (!text.empty()) {
    const auto c = decode_utf8(text.data(), text.data() + text.size());
    if (!c.valid || !strippable(c.code))
      break;
    text.remove_prefix(c.bytes);
  }
  while (!text.empty()) {
    std::size_t start = text.size() - 1;
    while (start > 0 && text.size() - start < 4 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80)
      --start;
    const auto c = decode_utf8(text.data() + start, text.data() + text.size());
    if (!c.valid || c.bytes != text.size() - start || !strippable(c.code))
      break;
    text.remove_suffix(c.bytes);
  }
  return text;
}

} // namespace troupe::unicode
