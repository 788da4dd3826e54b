// Cuts text into pre-tokens, the stretches within which BPE merges. Hand-written equivalents of the four regular expressions
// that byte-level BPE models use; no regex engine, one pass, no allocation.
//
// Ill-formed bytes count as characters that are neither letter, number nor space. Pure functions; any thread.
#pragma once
#include "model/tokenizer_data.hpp"
#include "model/unicode.hpp"

namespace troupe {

// Calls `take(begin, end)` for each pre-token of [begin, end), in order; together they are the whole text.
template <class Take>
void for_each_pre_token(pre_tokenizer kind, const char* begin, const char* end, Take&& take);

namespace detail {

using unicode::class_table;
using unicode::decode_utf8;

struct classified {
  std::uint8_t bytes;
  std::uint8_t kind; // unicode::letter, number, space, or 0
};

inline classified classify(const class_table& classes, const char* p, const char* end) noexcept {
  constexpr std::uint8_t kinds = unicode::letter | unicode::number | unicode::space;
  const auto byte = static_cast<unsigned char>(*p);
  if (byte < 0x80)
    return {1, static_cast<std::uint8_t>(classes.of_ascii(byte) & kinds)};
  const auto c = decode_utf8(p, end);
  return {c.bytes, static_cast<std::uint8_t>(c.valid ? classes.of(c.code) & kinds : 0)};
}

// The end of the run of characters of exactly this kind that starts at p.
inline const char* run_of(const class_table& classes, std::uint8_t kind, const char* p, const char* end) noexcept {
  while (p < end) {
    const auto c = classify(classes, p, end);
    if (c.kind != kind)
      break;
    p += c.bytes;
  }
  return p;
}

inline bool is_line_end(char c) noexcept {
  return c == '\n' || c == '\r';
}

// The length of 's 't 're 've 'm 'll 'd at p, or 0. `fold`: letter case does not matter, and U+017F folds to s.
inline int contraction(const char* p, const char* end, bool fold) noexcept {
  if (*p != '\'' || end - p < 2)
    return 0;
  const auto lower = [fold](char c) { return fold && c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; };
  const char first = lower(p[1]);
  if (first == 's' || first == 't' || first == 'm' || first == 'd')
    return 2;
  if (end - p < 3)
    return 0;
  const char second = lower(p[2]);
  if (((first == 'r' || first == 'v') && second == 'e') || (first == 'l' && second == 'l'))
    return 3;
  if (fold && p[1] == '\xC5' && p[2] == '\xBF')
    return 3;
  return 0;
}

// White space that no earlier alternative takes: a run stops one character short of what follows it, so that the last one
// can lead the next pre-token (`\s+(?!\S)|\s+`). `at_end`: nothing follows the run.
inline const char* spaces_before_text(const char* p, const char* run_end, bool at_end) noexcept {
  if (at_end)
    return run_end;
  const char* last = run_end - 1;
  while (last > p && (static_cast<unsigned char>(*last) & 0xC0) == 0x80)
    --last;
  return last > p ? last : run_end;
}

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
// with N = 1 for qwen2 and N = 3 for llama_bpe. Precondition: p < end.
template <int NumberMax>
const char* pre_token_end_modern(const class_table& classes, const char* p, const char* end) noexcept {
  const auto first = classify(classes, p, end);
  if (first.kind == unicode::letter)
    return run_of(classes, unicode::letter, p + first.bytes, end);
  if (first.kind == unicode::number) {
    const char* q = p + first.bytes;
    for (int count = 1; count < NumberMax && q < end; ++count) {
      const auto c = classify(classes, q, end);
      if (c.kind != unicode::number)
        break;
      q += c.bytes;
    }
    return q;
  }
  if (const int length = contraction(p, end, true); length > 0)
    return p + length;
  const char* q = p + first.bytes;
  if (q < end && !is_line_end(*p)) {
    const auto second = classify(classes, q, end);
    if (second.kind == unicode::letter)
      return run_of(classes, unicode::letter, q + second.bytes, end);
    if (*p == ' ' && second.kind == 0)
      q += second.bytes;
  }
  if (first.kind == 0 || (*p == ' ' && q > p + 1)) {
    q = run_of(classes, 0, q, end);
    while (q < end && is_line_end(*q))
      ++q;
    return q;
  }
  const char* const run_end = run_of(classes, unicode::space, q, end);
  for (const char* last = run_end; last > p; --last)
    if (is_line_end(last[-1]))
      return last;
  return spaces_before_text(p, run_end, run_end == end);
}

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// `single_numbers`: every number character is cut off first and stands alone, and what is before it ends there (smollm).
inline const char* pre_token_end_gpt2(const class_table& classes, const char* p, const char* end,
                                      bool single_numbers) noexcept {
  if (const int length = contraction(p, end, false); length > 0)
    return p + length;
  auto first = classify(classes, p, end);
  const char* q = p + first.bytes;
  if (*p == ' ' && q < end) {
    const auto second = classify(classes, q, end);
    if (second.kind != unicode::space && !(single_numbers && second.kind == unicode::number)) {
      first = second;
      q += second.bytes;
    }
  }
  if (first.kind == unicode::number && single_numbers)
    return q;
  if (first.kind != unicode::space)
    return run_of(classes, first.kind, q, end);
  const char* const run_end = run_of(classes, unicode::space, q, end);
  const bool at_end = run_end == end || (single_numbers && classify(classes, run_end, end).kind == unicode::number);
  return spaces_before_text(p, run_end, at_end);
}

} // namespace detail

template <class Take>
void for_each_pre_token(pre_tokenizer kind, const char* begin, const char* end, Take&& take) {
  const auto& classes = unicode::class_table::get();
  const auto scan = [&](auto&& next) {
    for (const char* p = begin; p < end;) {
      const char* const q = next(p);
      take(p, q);
      p = q;
    }
  };
  switch (kind) {
  case pre_tokenizer::qwen2: scan([&](const char* p) { return detail::pre_token_end_modern<1>(classes, p, end); }); break;
  case pre_tokenizer::llama_bpe: scan([&](const char* p) { return detail::pre_token_end_modern<3>(classes, p, end); }); break;
  case pre_tokenizer::gpt2: scan([&](const char* p) { return detail::pre_token_end_gpt2(classes, p, end, false); }); break;
  case pre_tokenizer::smollm: scan([&](const char* p) { return detail::pre_token_end_gpt2(classes, p, end, true); }); break;
  }
}

} // namespace troupe
