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

template <class Word>
std::uint64_t load(const char* p) noexcept {
  Word x;
  std::memcpy(&x, p, sizeof x);
  return x;
}

// x modulo the prime. Precondition: x < 2^125.
std::uint64_t reduce(wide x) noexcept {
  const auto high = static_cast<std::uint64_t>(x >> 61);
  std::uint64_t y = (static_cast<std::uint64_t>(x) & prime) + (high & prime) + (high >> 61);
  y = (y & prime) + (y >> 61);
  return y >= prime ? y - prime : y;
}

using powers = std::array<std::uint64_t, 4>;

// Three steps of the polynomial at once, of a number that has up to 128 bits; `sum` stands for all before, in its place.
std::uint64_t add_wide(wide sum, const powers& point, wide number) noexcept {
  return reduce(sum + static_cast<wide>(static_cast<std::uint64_t>(number) & word_mask) * point[1] +
                static_cast<wide>(static_cast<std::uint64_t>(number >> word_bits) & word_mask) * point[0] +
                static_cast<std::uint64_t>(number >> (2 * word_bits)));
}

struct pair {
  std::uint64_t first = 0, second = 0;
};

// The last bytes of a text of this size, where they fill no pair: those before them are read again. Given the size, no two
// texts read the same.
pair last_pair(const char* end, std::size_t size) noexcept {
  const char* const begin = end - size;
  if (size >= 16)
    return {load<std::uint64_t>(end - 16), load<std::uint64_t>(end - 8)};
  if (size >= 8)
    return {load<std::uint64_t>(begin), load<std::uint64_t>(end - 8)};
  if (size >= 4)
    return {load<std::uint32_t>(begin), load<std::uint32_t>(end - 4)};
  const auto byte = [begin](std::size_t i) { return load<std::uint8_t>(begin + i); };
  return {byte(0) | byte(size / 2) << 8 | byte(size - 1) << 16, 0};
}

struct block_sums {
  wide first = 0, second = 0;

  void add(const pair& p, const hash_key& key, std::size_t word) noexcept {
    first += static_cast<wide>(p.first + key.blocks[0][word]) * (p.second + key.blocks[0][word + 1]);
    second += static_cast<wide>(p.first + key.blocks[1][word]) * (p.second + key.blocks[1][word + 1]);
  }
};

// NH of `bytes`, which end a text of `size` bytes or fill a block of it.
block_sums sums_of(std::string_view bytes, std::size_t size, const hash_key& key) noexcept {
  block_sums sums;
  std::size_t at = 0;
  for (; at + pair_bytes <= bytes.size(); at += pair_bytes)
    sums.add({load<std::uint64_t>(bytes.data() + at), load<std::uint64_t>(bytes.data() + at + 8)}, key, at / 8);
  if (at < bytes.size())
    sums.add(last_pair(bytes.data() + bytes.size(), size), key, at / 8);
  return sums;
}

} // namespace

hash_key::hash_key(const std::function<std::uint64_t()>& random) {
  for (auto& block : blocks)
    std::generate(block.begin(), block.end(), random);
  for (auto& point : powers) {
    do
      point[0] = random() >> 3;
    while (point[0] < 2 || point[0] >= prime);
    for (std::size_t i = 1; i < point.size(); ++i)
      point[i] = reduce(static_cast<wide>(point[i - 1]) * point[0]);
  }
}

void keyed_hasher::add(std::uint64_t number) {
  TROUPE_CHECK(number <= word_mask);
  for (std::size_t lane = 0; lane < hash_key::lanes; ++lane)
    sums_[lane] = reduce(static_cast<wide>(sums_[lane]) * key_->powers[lane][0] + number);
}

void keyed_hasher::add(std::string_view bytes) {
  const std::size_t size = bytes.size();
  TROUPE_CHECK(size <= word_mask);
  const auto& [one, two] = key_->powers;
  auto block = bytes.substr(0, block_bytes);
  auto sums = sums_of(block, size, *key_);
  sums_[0] = add_wide(static_cast<wide>(sums_[0]) * one[3] + static_cast<wide>(size) * one[2], one, sums.first);
  sums_[1] = add_wide(static_cast<wide>(sums_[1]) * two[3] + static_cast<wide>(size) * two[2], two, sums.second);
  for (bytes.remove_prefix(block.size()); !bytes.empty(); bytes.remove_prefix(block.size())) {
    block = bytes.substr(0, block_bytes);
    sums = sums_of(block, size, *key_);
    sums_[0] = add_wide(static_cast<wide>(sums_[0]) * one[2], one, sums.first);
    sums_[1] = add_wide(static_cast<wide>(sums_[1]) * two[2], two, sums.second);
  }
}

} // namespace troupe
