#include <doctest/doctest.h>

#include <algorithm>

#include "base/random.hpp"
#include "memory/token_eviction.hpp"

using namespace troupe;

TEST_CASE("the highest scores stay, with the first and the last positions, in order") {
  std::vector<float> scores(100);
  for (const std::size_t high : {20u, 40u, 41u, 60u})
    scores[high] = 1;
  const auto kept = choose_kept(scores, 12, {2, 3, 1});
  CHECK(kept == std::vector<std::int32_t>{0, 1, 20, 40, 41, 60, 94, 95, 96, 97, 98, 99}); // of equals the later ones
}

TEST_CASE("a position shares its neighbours' scores, so that a span stays whole") {
  std::vector<float> scores(100);
  scores[50] = 1;
  const auto kept = choose_kept(scores, 8, {1, 1, 5});
  CHECK(std::count_if(kept.begin(), kept.end(), [](int i) { return i >= 48 && i <= 52; }) == 5);
}

TEST_CASE("protected positions take at most a quarter each, and any number may stay") {
  constexpr std::uint64_t seed = 12;
  std::vector<float> scores;
  for (std::uint64_t i = 0; i < 200; ++i)
    scores.push_back(static_cast<float>(uniform_at(seed, i)));
  for (int keep = 1; keep <= 200; ++keep) {
    const auto kept = choose_kept(scores, keep, {50, 50, 5});
    REQUIRE(static_cast<int>(kept.size()) == keep);
    REQUIRE(std::is_sorted(kept.begin(), kept.end()));
    REQUIRE(std::adjacent_find(kept.begin(), kept.end()) == kept.end());
    REQUIRE(kept.front() >= 0);
    REQUIRE(kept.back() < 200);
  }
  const auto best = std::max_element(scores.begin() + 3, scores.end() - 3) - scores.begin();
  const auto one = choose_kept(scores, 1, {50, 50, 1});
  CHECK(scores[static_cast<std::size_t>(one[0])] >= scores[static_cast<std::size_t>(best)]);
}

TEST_CASE("chunks that are read again cover every position once, each behind some that were read before") {
  for (const int rows : {1, 7, 8, 64, 128})
    for (const int positions : {1, 100, 1000}) {
      int at = 0;
      while (at < positions) {
        const auto chunk = read_again_from(at, positions, rows);
        REQUIRE(chunk.begin == at);
        REQUIRE(chunk.end > chunk.begin);
        REQUIRE(chunk.end <= positions);
        REQUIRE(chunk.end - chunk.lead <= rows);
        REQUIRE(chunk.lead == std::max(0, at - rows / 8));
        at = chunk.end;
      }
    }
}
