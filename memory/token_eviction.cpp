#include "memory/token_eviction.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.hpp"

namespace troupe {

namespace {

// The mean over `span` neighbours, or as many as there are.
std::vector<float> spread(std::span<const float> scores, int span) {
  const int n = static_cast<int>(scores.size()), half = span / 2;
  std::vector<float> out;
  out.reserve(scores.size());
  for (int i = 0; i < n; ++i) {
    const int begin = std::max(0, i - half), end = std::min(n, i + half + 1);
    float sum = 0;
    for (int j = begin; j < end; ++j)
      if (const float score = scores[static_cast<std::size_t>(j)]; std::isfinite(score)) // a spoilt sequence's are none
        sum += score;
    out.push_back(sum / static_cast<float>(end - begin));
  }
  return out;
}

} // namespace

std::vector<std::int32_t> choose_kept(std::span<const float> scores, int keep, const eviction_rule& rule) {
  const int n = static_cast<int>(scores.size());
  TROUPE_CHECK(keep >= 1 && keep <= n);
  const int sinks = std::min(rule.sinks, keep / 4), recent = std::min(rule.recent, keep / 4);
  const auto spread_scores = spread(scores, rule.span);
  std::vector<std::int32_t> rest(static_cast<std::size_t>(n - sinks - recent));
  std::iota(rest.begin(), rest.end(), sinks);
  const auto wanted = rest.begin() + (keep - sinks - recent);
  std::nth_element(rest.begin(), wanted, rest.end(), [&](std::int32_t a, std::int32_t b) {
    const float x = spread_scores[static_cast<std::size_t>(a)], y = spread_scores[static_cast<std::size_t>(b)];
    return x != y ? x > y : a > b;
  });
  std::vector<std::int32_t> kept(static_cast<std::size_t>(sinks));
  std::iota(kept.begin(), kept.end(), 0);
  std::sort(rest.begin(), wanted);
  kept.insert(kept.end(), rest.begin(), wanted);
  for (int i = n - recent; i < n; ++i)
    kept.push_back(i);
  return kept;
}

reading_again read_again_from(int begin, int positions, int rows) noexcept {
  const int lead = std::min(begin, rows / 8);
  return {begin - lead, begin, std::min(positions, begin + rows - lead)};
}

} // namespace troupe
