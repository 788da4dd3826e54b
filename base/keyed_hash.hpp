// A hash that nobody without its key can make collide: universal, in the Carter-Wegman way. Blocks of 256 bytes go through NH
// (Black, Halevi, Krawczyk, Krovetz, Rogaway: UMAC, 1999), their sums through a polynomial modulo 2^61 - 1 at a secret point;
// all of it twice, under independent keys.
//
// Promises: for any two different sequences of add() the chance over the key that they meet is below (words / 2^60)^2, where
// words is 3 for each 256 bytes and 1 a call: less than 2^-80 for 16 MiB. So equal values stand for equal sequences, as long as
// no value is shown to those who choose what is hashed. The polynomial's state is the value, which makes the values of all
// beginnings of a sequence free. Speed: several GB/s in portable C++. One thread an object; a key may be shared.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

namespace troupe {

struct hash_value {
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  friend bool operator==(const hash_value&, const hash_value&) = default;
};

struct hash_key {
  static constexpr std::size_t block_words = 32;
  static constexpr std::size_t lanes = 2;

  // `random`: uniform words that nobody else knows.
  explicit hash_key(const std::function<std::uint64_t()>& random);

  std::array<std::array<std::uint64_t, block_words>, lanes> blocks;
  std::array<std::array<std::uint64_t, 4>, lanes> powers; // of each polynomial's point: the first to the fourth
};

class keyed_hasher {
public:
  explicit keyed_hasher(const hash_key& key) : key_(&key) {}

  void add(std::uint64_t number);   // below 2^60
  void add(std::string_view bytes); // its length, then its bytes: where one text ends and the next begins counts

  // Of all that was added so far.
  hash_value value() const noexcept { return {sums_[0], sums_[1]}; }

private:
  const hash_key* key_;
  std::array<std::uint64_t, hash_key::lanes> sums_{1, 1}; // not 0: a sequence's length counts
};

} // namespace troupe
