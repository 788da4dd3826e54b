#include "model/unicode_nfc.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utf8proc.h>
#include <vector>

#include "base/check.hpp"
#include "model/unicode.hpp"

namespace troupe::unicode {
namespace {

// Everything below U+0300 is in NFC and starts a new cluster: lead bytes up to 0xCB.
constexpr unsigned char first_suspect_lead = 0xCC;

// The first suspect character at or after p, or end.
const char* find_suspect(const char* p, const char* end, const class_table& classes) noexcept {
  while (p < end) {
    while (end - p >= 8) {
      std::uint64_t word;
      std::memcpy(&word, p, 8);
      if ((word & 0x8080808080808080ull) != 0)
        break;
      p += 8;
    }
    if (p == end)
      break;
    if (static_cast<unsigned char>(*p) < first_suspect_lead) {
      ++p;
      continue;
    }
    const auto c = decode_utf8(p, end);
    if (c.valid && (classes.of(c.code) & nfc_suspect) != 0)
      return p;
    p += c.bytes;
  }
  return end;
}

std::uint8_t combining_class(utf8proc_int32_t c) noexcept {
  if (is_newer_than_nfc(static_cast<char32_t>(c)))
    return 0;
  return static_cast<std::uint8_t>(utf8proc_get_property(c)->combining_class);
}

// Normalises one stretch of well-formed text: decompose, order the marks, compose. The ordering is ours because utf8proc's
// takes quadratic time on long runs of marks.
void normalise(std::string_view stretch, std::vector<utf8proc_int32_t>& code_points, std::string& out) {
  code_points.clear();
  const char* const end = stretch.data() + stretch.size();
  for (const char* p = stretch.data(); p < end;) {
    const auto c = decode_utf8(p, end);
    std::array<utf8proc_int32_t, 8> parts{};
    int boundary = 0;
    const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c.code), parts.data(),
                                               static_cast<utf8proc_ssize_t>(parts.size()), UTF8PROC_DECOMPOSE, &boundary);
    TROUPE_CHECK(c.valid && count > 0 && count <= static_cast<utf8proc_ssize_t>(parts.size()));
    code_points.insert(code_points.end(), parts.begin(), parts.begin() + count);
    p += c.bytes;
  }
  for (auto run = code_points.begin(); run != code_points.end();) {
    if (combining_class(*run) == 0) {
      ++run;
      continue;
    }
    const auto run_end = std::find_if(run, code_points.end(), [](auto c) { return combining_class(c) == 0; });
    std::stable_sort(run, run_end, [](auto a, auto b) { return combining_class(a) < combining_class(b); });
    run = run_end;
  }
  const auto composed = utf8proc_normalize_utf32(code_points.data(), static_cast<utf8proc_ssize_t>(code_points.size()),
                                                 static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  TROUPE_CHECK(composed >= 0);
  for (utf8proc_ssize_t i = 0; i < composed; ++i)
    append_utf8(out, static_cast<char32_t>(code_points[static_cast<std::size_t>(i)]));
}

// The start of the character that ends at p; p itself where nothing well-formed of this stretch stands before it.
const char* previous_char(const char* begin, const char* p) noexcept {
  const char* q = p;
  while (q > begin && p - q < 4) {
    --q;
    if ((static_cast<unsigned char>(*q) & 0xC0) != 0x80)
      break;
  }
  if (q == p)
    return p;
  const auto c = decode_utf8(q, p);
  return c.valid && c.bytes == p - q ? q : p;
}

} // namespace

bool may_need_nfc(std::string_view text) noexcept {
  const char* const end = text.data() + text.size();
  return find_suspect(text.data(), end, class_table::get()) != end;
}

// A character that is no suspect starts a cluster that nothing before it can change. So only the clusters that hold a suspect
// are normalised, each from the unsuspicious character before it to the next unsuspicious one.
std::string to_nfc(std::string_view text) {
  const auto& classes = class_table::get();
  std::string out;
  out.reserve(text.size());
  std::vector<utf8proc_int32_t> code_points;
  const char* const end = text.data() + text.size();
  const char* p = text.data();
  while (p < end) {
    const char* const suspect = find_suspect(p, end, classes);
    if (suspect == end) {
      out.append(p, end);
      break;
    }
    const char* const cluster = previous_char(p, suspect);
    out.append(p, cluster);
    const char* cluster_end = suspect;
    while (cluster_end < end) {
      const auto c = decode_utf8(cluster_end, end);
      if (!c.valid || (classes.of(c.code) & nfc_suspect) == 0)
        break;
      cluster_end += c.bytes;
    }
    normalise({cluster, static_cast<std::size_t>(cluster_end - cluster)}, code_points, out);
    p = cluster_end;
  }
  return out;
}

} // namespace troupe::unicode
