// Where a pre-token can be cut before merging: between two characters that no merge result spans, merging cannot reach from
// one side to the other, so both sides merge as if alone. Scripts without spaces have long pre-tokens; cut this way, most of
// their pieces are words of the vocabulary.
//
// Exact: a pair may be called joinable that is not (the set is a bitmap of hashes), never the other way round. Immutable.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace troupe {

class cut_table {
public:
  cut_table() : characters_(words), bytes_(65536 / 64) {}

  // Takes in that merging can give a token of these bytes.
  void add(std::string_view bytes);
  // Takes in that this byte has no token: it is dropped, so that its neighbours may merge across it.
  void add_dropped(unsigned char byte);

  // Whether any token may span the boundary between these neighbours. `last` ends the left character, `first` begins the right.
  bool joinable(char32_t left, char32_t right, unsigned char last, unsigned char first) const noexcept {
    return get(characters_, hash_of(left, right)) || get(bytes_, byte_pair(last, first));
  }

private:
  using bitmap = std::vector<std::uint64_t>;
  static constexpr std::size_t words = std::size_t{1} << 15; // 2^21 bits: a few per cent set for 150,000 tokens

  static std::uint64_t hash_of(char32_t left, char32_t right) noexcept {
    const std::uint64_t key = (static_cast<std::uint64_t>(left) << 21) | right;
    return (key * 0x9e3779b97f4a7c15ull) >> 43;
  }
  static std::uint64_t byte_pair(unsigned char last, unsigned char first) noexcept {
    return static_cast<std::uint64_t>(last) << 8 | first;
  }
  static bool get(const bitmap& bits, std::uint64_t at) noexcept { return ((bits[at >> 6] >> (at & 63)) & 1) != 0; }
  static void set(bitmap& bits, std::uint64_t at) noexcept { bits[at >> 6] |= std::uint64_t{1} << (at & 63); }

  bitmap characters_; // pairs that stand whole in a token
  bitmap bytes_;      // the bytes at a boundary that a token spans with a part of a character
};

} // namespace troupe
