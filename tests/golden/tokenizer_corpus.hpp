// Two megabytes of mixed text, the same on every machine and in tokenizer_corpus.py: English, Chinese, code, emoji, white
// space, spelled control tokens, combining marks, random assigned code points and long runs.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"

namespace troupe::testing {

class tokenizer_corpus {
public:
  static constexpr std::uint64_t blocks = 32;
  static constexpr std::size_t block_bytes = 65536; // at least

  // Reads tokenizer_corpus_parts.txt; throws std::runtime_error where it is absent.
  tokenizer_corpus();
  std::string block(std::uint64_t number) const;

private:
  using strings = std::vector<std::string>;
  strings english_, chinese_, code_, emoji_, space_, added_, marks_;
  std::vector<std::pair<char32_t, char32_t>> ranges_;
};

// FNV-1a, 64 bits; of ids: four little-endian bytes each.
std::uint64_t fnv1a(std::string_view bytes);
std::uint64_t fnv1a(const std::vector<token_id>& ids);

} // namespace troupe::testing
