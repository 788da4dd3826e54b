#include "base/keyed_hash.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"

namespace troupe {
namespace {

__extension__ typedef unsigned __int128 wide;

constexpr std::uint64_t prime = (std::uint64_t{1} << 61) - 1;
constexpr unsigned word_bits = 60; // a word of the polynomial is below the prime
constexpr std::uint64_t word_mask = (std::uint64_t{1} << word_bits) - 1;
constexpr std::size_t block_bytes = hash_key::block_words * 8;
constexpr std::size_t pair_bytes = 16;

std::uint64_t load_8(const char* p) noexcept {
  std::uint64_t x;
  std::memcpy(&x, p, 8);
  return x;
}

// sum * point + word, modulo the prime.
std::uint64_t step(std::uint64_t sum, std::uint64_t point, std::uint64_t word) noexcept {
  const wide x = static_cast<wide>(sum) * point + word;
  std::uint64_t y = (static_cast<std::uint64_t>(x) & prime) + static_cast<std::uint64_t>(x >> 61);
  y = (y & prime) + (y >> 61);
  return y == prime ? 0 : y;
}

std::uint64_t step(std::uint64_t sum, std::uint64_t point, wide words) noexcept {
  sum = step(sum, point, static_cast<std::uint64_t>(words) & word_mask);
  sum = step(sum, point, static_cast<std::uint64_t>(words >> word_bits) & word_mask);
  return step(sum, point, static_cast<std::uint64_t>(words >> (2 * word_bits)));
}

using block_keys = std::array<std::uint64_t, hash_key::block_words>;

wide nh_pair(const char* p, const std::uint64_t* key) noexcept {
  return static_cast<wide>(load_8(p) + key[0]) * (load_8(p + 8) + key[1]);
}

} // namespace

hash_key::hash_key(const std::function<std::uint64_t()>& random) {
  for (auto& block : blocks)
    std::generate(block.begin(), block.end(), random);
  for (auto& point : points)
    do
      point = random() >> 3;
    while (point < 2 || point >= prime);
}

void keyed_hasher::add(std::uint64_t number) {
  TROUPE_CHECK(number <= word_mask);
  for (std::size_t lane = 0; lane < hash_key::lanes; ++lane)
    sums_[lane] = step(sums_[lane], key_->points[lane], number);
}

void keyed_hasher::add(std::string_view bytes) {
  add(std::uint64_t{bytes.size()});
  const block_keys& first = key_->blocks[0];
  const block_keys& second = key_->blocks[1];
  while (!bytes.empty()) {
    const std::size_t size = std::min(bytes.size(), block_bytes);
    const std::size_t whole = size / pair_bytes * pair_bytes;
    wide a = 0, b = 0;
    for (std::size_t at = 0; at < whole; at += pair_bytes) {
      a += nh_pair(bytes.data() + at, &first[at / 8]);
      b += nh_pair(bytes.data() + at, &second[at / 8]);
    }
    if (whole < size) { // zeros fill the last pair; the length tells them from the text's own
      char rest[pair_bytes] = {};
      std::memcpy(rest, bytes.data() + whole, size - whole);
      a += nh_pair(rest, &first[whole / 8]);
      b += nh_pair(rest, &second[whole / 8]);
    }
    sums_[0] = step(sums_[0], key_->points[0], a);
    sums_[1] = step(sums_[1], key_->points[1], b);
    bytes.remove_prefix(size);
  }
}

} // namespace troupe
