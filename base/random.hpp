// Counter-based randomness: the value depends on (key, counter) alone, never on what was drawn before. A sequence keyed by
// (seed, token position) gives the same tokens whatever the batch, the load or the restart.
#pragma once
#include <cstdint>

namespace troupe {

// SplitMix64's finaliser (Steele, Lea, Flood 2014), a bijection on 64 bits.
constexpr std::uint64_t mix64(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

constexpr std::uint64_t random_at(std::uint64_t key, std::uint64_t counter) noexcept {
  return mix64(mix64(key) ^ mix64(counter * 0xd6e8feb86659fd93ull + 0x632be59bd9b4e019ull));
}

// Uniform in [0, 1) with 53 bits.
constexpr double uniform_at(std::uint64_t key, std::uint64_t counter) noexcept {
  return static_cast<double>(random_at(key, counter) >> 11) * 0x1.0p-53;
}

} // namespace troupe
