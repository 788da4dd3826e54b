#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "base/random.hpp"
#include "model/sampler.hpp"

using namespace troupe;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

sampled_token sample_of(std::vector<float> logits, const sampling_params& params, std::uint64_t position = 0,
                        const std::vector<token_count>& counts = {}) {
  return sample(logits, static_cast<int>(logits.size()), params, counts, position);
}

sampling_params at_temperature(float t) {
  sampling_params params;
  params.temperature = t;
  return params;
}

std::vector<float> random_logits(std::uint64_t seed, std::size_t count, bool ties) {
  std::vector<float> out(count);
  for (std::size_t i = 0; i < count; ++i) {
    const float x = static_cast<float>(uniform_at(seed, i) * 16 - 8);
    out[i] = ties ? std::floor(x) : x;
  }
  return out;
}

// The header's words with a full sort, in double. `tie`: how near the draw is to choosing a neighbour.
struct plain_choice {
  token_id token = -1;
  double tie = 1;
};
plain_choice choose_plainly(const std::vector<float>& logits, const sampling_params& params, std::uint64_t position) {
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return logits[a] > logits[b]; });
  const double best = static_cast<double>(logits[order[0]]);
  std::vector<double> weights;
  for (const float l : logits)
    weights.push_back(std::exp((static_cast<double>(l) - best) / static_cast<double>(params.temperature)));
  if (params.top_k > 0 && static_cast<std::size_t>(params.top_k) < order.size())
    order.resize(static_cast<std::size_t>(params.top_k));
  std::erase_if(order, [&](auto i) { return weights[i] < static_cast<double>(params.min_p); });
  plain_choice out;
  double total = 0;
  for (const auto i : order)
    total += weights[i];
  double reached = 0;
  for (std::size_t n = 0; n < order.size() && params.top_p < 1; ++n) {
    reached += weights[order[n]];
    out.tie = std::min(out.tie, std::abs(reached / total - static_cast<double>(params.top_p)));
    if (reached >= static_cast<double>(params.top_p) * total)
      order.resize(n + 1);
  }
  total = 0;
  for (const auto i : order)
    total += weights[i];
  std::sort(order.begin(), order.end());
  double left = uniform_at(params.seed, position);
  for (const auto i : order) {
    const double p = weights[i] / total;
    out.tie = std::min(out.tie, std::abs(left - p));
    if (left < p) {
      out.token = static_cast<token_id>(i);
      return out;
    }
    left -= p;
  }
  out.tie = 0;
  return out;
}

} // namespace

TEST_CASE("greedy takes the highest logit, and the lowest id among equals, wherever they stand") {
  for (const std::size_t count : {1u, 5u, 31u, 32u, 33u, 127u, 128u, 129u, 1000u})
    for (std::size_t first = 0; first < count; first += std::max<std::size_t>(1, count / 7))
      for (std::size_t second = first; second < count; second += std::max<std::size_t>(1, count / 5)) {
        std::vector<float> logits(count, -3.0f);
        logits[first] = logits[second] = 2.0f;
        CHECK(sample_of(logits, at_temperature(0)).token == static_cast<token_id>(first));
      }
}

TEST_CASE("a NaN anywhere below the usable ids, or +inf, gives no token") {
  for (const std::size_t count : {1u, 40u, 300u})
    for (std::size_t at = 0; at < count; ++at)
      for (const float bad : {not_a_number, infinity}) {
        std::vector<float> logits(count, 1.0f);
        logits[at] = bad;
        for (const float temperature : {0.0f, 1.0f})
          CHECK(sample_of(logits, at_temperature(temperature)).token == -1);
      }
}

TEST_CASE("a row of -inf alone, by mask or by bias, and an empty row give no token") {
  CHECK(sample_of(std::vector<float>(200, -infinity), at_temperature(1)).token == -1);
  CHECK(sample_of(std::vector<float>(200, -infinity), at_temperature(0)).token == -1);
  auto params = at_temperature(1);
  params.logit_bias = {{0, -infinity}, {1, -infinity}};
  CHECK(sample_of({5, 6}, params).token == -1);
  CHECK(sample_of({}, params).token == -1);
}

TEST_CASE("masked ids are never chosen, however flat the distribution") {
  std::vector<float> logits(300, -infinity);
  logits[7] = 0;
  logits[290] = -5;
  for (auto params : {at_temperature(1e9f), at_temperature(infinity), at_temperature(1)}) {
    params.top_k = 50;
    for (const int k : {0, 50})
      for (const float p : {1.0f, 0.9999f})
        for (std::uint64_t position = 0; position < 50; ++position) {
          params.top_k = k;
          params.top_p = p;
          const auto token = sample_of(logits, params, position).token;
          CHECK((token == 7 || token == 290));
        }
  }
}

TEST_CASE("ids from `usable` on are never looked at") {
  std::vector<float> logits{1, 2, 3, not_a_number, 100, infinity};
  CHECK(sample(logits, 3, at_temperature(0), {}, 0).token == 2);
  CHECK(sample(logits, 0, at_temperature(0), {}, 0).token == -1);
  auto params = at_temperature(0);
  params.logit_bias = {{4, 50.0f}, {-1, 9.0f}, {99, 9.0f}};
  const std::vector<token_count> counts{{4, 1, 1}, {-7, 1, 1}, {1000, 1, 1}};
  params.presence_penalty = 1;
  CHECK(sample(logits, 3, params, counts, 0).token == 2);
  CHECK(logits[4] == 100);
  CHECK_THROWS_AS(sample(logits, 7, params, counts, 0), check_failed);
  CHECK_THROWS_AS(sample(logits, -1, params, counts, 0), check_failed);
}

TEST_CASE("top-k of one and a very low temperature are greedy") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto logits = random_logits(seed, 500, seed % 2 == 0);
    const auto greedy = sample_of(logits, at_temperature(0)).token;
    for (std::uint64_t position = 0; position < 5; ++position) {
      auto one = at_temperature(5);
      one.top_k = 1;
      CHECK(sample_of(logits, one, position).token == greedy);
      CHECK(sample_of(logits, at_temperature(1e-6f), position).token == greedy);
      auto small = at_temperature(2);
      small.top_p = 1e-6f;
      CHECK(sample_of(logits, small, position).token == greedy);
      auto floor = at_temperature(2);
      floor.min_p = 0.999999f;
      floor.top_k = 1;
      CHECK(sample_of(logits, floor, position).token == greedy);
    }
  }
}

TEST_CASE("a huge temperature is uniform over what top-k leaves") {
  std::vector<float> logits{9, -2, 5, 7, 0, 3};
  auto params = at_temperature(infinity);
  params.top_k = 3;
  std::vector<int> hits(6);
  for (std::uint64_t position = 0; position < 3000; ++position)
    ++hits[static_cast<std::size_t>(sample_of(logits, params, position).token)];
  CHECK(hits[1] + hits[4] + hits[5] == 0);
  for (const std::size_t i : {0u, 2u, 3u})
    CHECK(std::abs(hits[i] - 1000) < 100); // 4 standard deviations
}

TEST_CASE("draws follow the probabilities") {
  // 8 tokens, 40,000 draws: chi-squared with 7 degrees of freedom exceeds 24.3 once in a thousand; the seed is fixed.
  const std::vector<float> logits{1.0f, -1.0f, 0.5f, 2.0f, 0.0f, -3.0f, 1.5f, -0.5f};
  auto params = at_temperature(0.8f);
  params.seed = 20260101;
  double total = 0;
  for (const float l : logits)
    total += std::exp(static_cast<double>(l) / 0.8);
  std::vector<int> hits(logits.size());
  const int draws = 40'000;
  for (int i = 0; i < draws; ++i)
    ++hits[static_cast<std::size_t>(sample_of(logits, params, static_cast<std::uint64_t>(i)).token)];
  double chi_squared = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double expected = draws * std::exp(static_cast<double>(logits[i]) / 0.8) / total;
    chi_squared += (hits[i] - expected) * (hits[i] - expected) / expected;
  }
  CHECK(chi_squared < 24.3);
}

TEST_CASE("the draw depends on seed and position alone") {
  const auto logits = random_logits(5, 700, false);
  auto params = at_temperature(1.5f);
  params.seed = 3;
  std::vector<token_id> forward;
  for (std::uint64_t position = 0; position < 40; ++position)
    forward.push_back(sample_of(logits, params, position).token);
  for (std::uint64_t position = 40; position-- > 0;)
    CHECK(sample_of(logits, params, position).token == forward[position]);
  params.seed = 4;
  int same = 0;
  for (std::uint64_t position = 0; position < 40; ++position)
    same += sample_of(logits, params, position).token == forward[position];
  CHECK(same < 20);
}

TEST_CASE("every truncation chooses what a full sort chooses, on random rows") {
  constexpr std::uint64_t seed = 4711;
  CAPTURE(seed);
  int compared = 0;
  for (std::uint64_t i = 0; i < 600; ++i) {
    CAPTURE(i);
    const auto pick = [&](std::uint64_t what, std::size_t n) { return random_at(seed + what, i) % n; };
    const auto logits = random_logits(seed + i, 1 + pick(0, i % 10 == 0 ? 9000 : 600), pick(1, 3) == 0);
    sampling_params params;
    params.seed = i;
    params.temperature = std::vector<float>{0.3f, 0.7f, 1.0f, 2.0f, 20.0f}[pick(2, 5)];
    params.top_k = std::vector<int>{0, 0, 1, 2, 20, 65, 400, 5000}[pick(3, 8)];
    params.top_p = std::vector<float>{1.0f, 1.0f, 0.5f, 0.9f, 0.999f}[pick(4, 5)];
    params.min_p = std::vector<float>{0.0f, 0.0f, 0.01f, 0.3f}[pick(5, 4)];
    const auto expected = choose_plainly(logits, params, i);
    const auto got = sample_of(logits, params, i).token;
    if (expected.tie < 1e-5)
      continue;
    ++compared;
    CHECK(got == expected.token);
  }
  CHECK(compared > 500);
}

TEST_CASE("log-probabilities are taken after bias and penalties, before temperature and truncation") {
  const std::vector<float> logits{2.0f, 1.0f, -1.0f, 0.5f};
  const std::vector<token_count> counts{{0, 1, 0}, {2, 0, 2}};
  sampling_params params;
  params.temperature = 0.3f;
  params.top_k = 1;
  params.repetition_penalty = 2.0f;
  params.frequency_penalty = 0.25f;
  params.logit_bias = {{1, 0.75f}};
  params.logprobs = true;
  params.top_logprobs = 3;
  // 0: 2 / 2 = 1; 1: 1 + 0.75; 2: -1 * 2 - 2 * 0.25 = -2.5; 3: 0.5
  const double total = std::log(std::exp(1.0) + std::exp(1.75) + std::exp(-2.5) + std::exp(0.5));
  const auto got = sample_of(logits, params, 0, counts);
  CHECK(got.token == 1);
  CHECK(std::abs(static_cast<double>(got.logprob) - (1.75 - total)) < 1e-6);
  REQUIRE(got.top.size() == 3);
  const std::vector<std::pair<token_id, double>> expected{{1, 1.75}, {0, 1.0}, {3, 0.5}};
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(got.top[i].token == expected[i].first);
    CHECK(std::abs(static_cast<double>(got.top[i].logprob) - (expected[i].second - total)) < 1e-6);
  }
}

TEST_CASE("alternatives are best first, at most as many as there are, ties by id, and absent unless asked for") {
  auto params = at_temperature(0);
  CHECK(sample_of({1, 2}, params).top.empty());
  params.logprobs = true;
  CHECK(sample_of({1, 2}, params).top.empty());
  params.top_logprobs = 10;
  const auto got = sample_of({1, -infinity, 3, 3, 1}, params);
  std::vector<token_id> ids;
  for (const auto& t : got.top)
    ids.push_back(t.token);
  CHECK(ids == std::vector<token_id>{2, 3, 0, 4});
  double mass = 0;
  for (const auto& t : got.top)
    mass += std::exp(static_cast<double>(t.logprob));
  CHECK(std::abs(mass - 1) < 1e-6);
}

TEST_CASE("bias forces and forbids") {
  auto params = at_temperature(1);
  params.logit_bias = {{3, 100.0f}};
  for (std::uint64_t position = 0; position < 30; ++position)
    CHECK(sample_of({4, 4, 4, -4, 4}, params, position).token == 3);
  params.logit_bias = {{0, -infinity}, {1, -100.0f}};
  for (std::uint64_t position = 0; position < 30; ++position)
    CHECK(sample_of({9, 9, 0}, params, position).token == 2);
}
