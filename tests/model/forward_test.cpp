#include <doctest/doctest.h>

#include <cmath>

#include "../support/golden_cases.hpp"
#include "../support/logit_source.hpp"
#include "../support/random_model.hpp"
#include "base/check.hpp"
#include "model/forward.hpp"

using namespace troupe;
using namespace troupe::tests;

TEST_CASE("random models of every architecture and weight type give the logits of the independent implementation") {
  // Float32 sums over 512 terms against float64: 1e-5 is some hundred roundings, far below any wrong step of the math.
  const auto cases = read_random_cases();
  REQUIRE(cases.size() == 33);
  for (const auto& c : cases) {
    CAPTURE(c.name);
    const auto model = c.make();
    CHECK(random_tokens(c.seed, static_cast<int>(c.tokens.size()), c.sizes.vocabulary) == c.tokens);
    reference_source source(model.weights);
    CHECK(relative_error(c, source) < 1e-5);
  }
}

TEST_CASE("the goldens notice another pairing, another scaling, a missing divisor or a wrong base of RoPE") {
  for (const auto& c : read_random_cases()) {
    CAPTURE(c.name);
    const auto error_with = [&](auto change) {
      auto changed = c;
      change(changed.sizes.rope);
      const auto model = changed.make();
      reference_source source(model.weights);
      return relative_error(changed, source);
    };
    CHECK(error_with([](rope_settings& rope) { rope.adjacent_pairs = !rope.adjacent_pairs; }) > 1e-2);
    CHECK(error_with([](rope_settings& rope) { rope.base *= 2; }) > 1e-3);
    if (c.sizes.rope.scaling != rope_scaling::none)
      CHECK(error_with([](rope_settings& rope) { rope.scaling = rope_scaling::none; }) > 1e-3);
    if (!c.sizes.rope.divisors.empty())
      CHECK(error_with([](rope_settings& rope) { rope.divisors.clear(); }) > 1e-3);
  }
}

TEST_CASE("logits do not depend on how tokens are cut into calls") {
  const auto model = make_random_model(architecture::qwen3, weight_type::q8_0, 7);
  const auto tokens = random_tokens(7, 13, 320);
  reference_model whole(model.weights);
  const auto all = whole.feed_all(tokens);
  REQUIRE(all.size() == tokens.size());
  CHECK(whole.position() == 13);

  reference_model pieces(model.weights);
  const std::span<const token_id> view(tokens);
  CHECK(pieces.feed(view.first(5)) == all[4]);
  CHECK(pieces.feed(view.subspan(5, 1)) == all[5]);
  CHECK(pieces.feed(view.subspan(6)) == all[12]);

  pieces.reset();
  CHECK(pieces.position() == 0);
  CHECK(pieces.feed(view.first(1)) == all[0]);
}

TEST_CASE("a later token does not change an earlier one's logits") {
  const auto model = make_random_model(architecture::llama, weight_type::f32, 9);
  auto tokens = random_tokens(9, 8, 320);
  const auto before = reference_model(model.weights).feed_all(tokens);
  tokens[7] = (tokens[7] + 1) % 320;
  const auto after = reference_model(model.weights).feed_all(tokens);
  for (std::size_t i = 0; i < 7; ++i)
    CHECK(before[i] == after[i]);
  CHECK(before[7] != after[7]);
}

TEST_CASE("a token outside the embedding and an empty feed fail a check") {
  const auto model = make_random_model(architecture::qwen2, weight_type::f16, 3);
  reference_model reference(model.weights);
  const std::vector<token_id> beyond{320};
  const std::vector<token_id> negative{-1};
  CHECK_THROWS_AS(reference.feed(beyond), check_failed);
  CHECK_THROWS_AS(reference.feed(negative), check_failed);
  CHECK_THROWS_AS(reference.feed({}), check_failed);
}
