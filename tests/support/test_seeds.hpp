// The seeds of a random test: TROUPE_SEED alone where it is set, else 1 to `count`. Says which, so that a failure can be
// repeated.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

namespace troupe::testing {

inline std::vector<std::uint64_t> test_seeds(std::size_t count) {
  if (const char* given = std::getenv("TROUPE_SEED"))
    return {std::strtoull(given, nullptr, 10)};
  std::vector<std::uint64_t> seeds(count);
  std::iota(seeds.begin(), seeds.end(), 1u);
  std::printf("seeds 1..%zu; TROUPE_SEED=n repeats one\n", count);
  return seeds;
}

} // namespace troupe::testing
