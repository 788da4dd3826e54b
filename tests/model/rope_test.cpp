#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>

#include "base/check.hpp"
#include "model/rope.hpp"

using namespace troupe;

namespace {

bool near(float got, double expected) { return std::abs(static_cast<double>(got) - expected) <= 1e-6 * std::abs(expected); }

// Qwen3's settings for 131,072 tokens.
rope_settings qwen3_yarn() {
  rope_settings rope;
  rope.base = 1e6f;
  rope.scaling = rope_scaling::yarn;
  rope.factor = 4.0f;
  rope.original_context = 32768;
  return rope;
}

} // namespace

TEST_CASE("without scaling the frequencies fall geometrically from 1") {
  rope_settings rope;
  rope.base = 1e6f;
  const auto table = make_rope_table(rope, 128);
  REQUIRE(table.frequencies.size() == 64);
  CHECK(table.magnitude == 1.0f);
  CHECK(table.frequencies[0] == 1.0f);
  CHECK(near(table.frequencies[32], 1e-3));
  CHECK(near(table.frequencies[63], 1.240937760751720e-6));
}

TEST_CASE("linear scaling divides every frequency and keeps the magnitude") {
  rope_settings rope;
  rope.scaling = rope_scaling::linear;
  rope.factor = 2.5f;
  const auto table = make_rope_table(rope, 64);
  const auto plain = make_rope_table({}, 64);
  for (std::size_t i = 0; i < 32; ++i)
    CHECK(near(table.frequencies[i], static_cast<double>(plain.frequencies[i]) / 2.5));
  CHECK(table.magnitude == 1.0f);
}

TEST_CASE("YaRN keeps pairs up to 23, interpolates from 40 on, and ramps between, for Qwen3 at factor 4") {
  auto plain_settings = qwen3_yarn();
  plain_settings.scaling = rope_scaling::none;
  const auto plain = make_rope_table(plain_settings, 128);
  const auto table = make_rope_table(qwen3_yarn(), 128);
  CHECK(near(table.magnitude, 1.138629436111989));
  for (std::size_t i = 0; i < 64; ++i) {
    CAPTURE(i);
    const auto before = static_cast<double>(plain.frequencies[i]);
    if (i <= 23)
      CHECK(near(table.frequencies[i], before));
    else if (i >= 40)
      CHECK(near(table.frequencies[i], before / 4));
    else
      CHECK(near(table.frequencies[i], before * (1 - 0.75 * (static_cast<double>(i) - 23) / 17)));
  }
}

TEST_CASE("YaRN takes its attention factor from the file where it has one, and 1 where nothing is stretched") {
  auto rope = qwen3_yarn();
  rope.attention_factor = 1.25f;
  CHECK(make_rope_table(rope, 128).magnitude == 1.25f);
  rope.attention_factor = 0;
  rope.factor = 1;
  CHECK(make_rope_table(rope, 128).magnitude == 1.0f);
}

TEST_CASE("YaRN's ramp stays finite where both of its ends fall on the first pair") {
  auto rope = qwen3_yarn();
  rope.original_context = 1;
  for (const float f : make_rope_table(rope, 64).frequencies)
    CHECK(std::isfinite(f));
}

TEST_CASE("Llama 3.1 keeps short wavelengths, stretches long ones by the factor and blends between") {
  rope_settings rope; // Llama-3.1-8B
  rope.base = 500'000.0f;
  rope.scaling = rope_scaling::llama3;
  rope.factor = 8.0f;
  rope.original_context = 8192;
  rope.low_frequency_factor = 1.0f;
  rope.high_frequency_factor = 4.0f;
  const auto table = make_rope_table(rope, 128);
  rope.scaling = rope_scaling::none;
  const auto plain = make_rope_table(rope, 128);
  int kept = 0;
  int blended = 0;
  for (std::size_t i = 0; i < 64; ++i) {
    const auto before = static_cast<double>(plain.frequencies[i]);
    const double fits = 8192 * before / 6.283185307179586; // how often the wavelength fits into the original context
    if (fits > 4) {
      CHECK(near(table.frequencies[i], before));
      ++kept;
    } else if (fits < 1) {
      CHECK(near(table.frequencies[i], before / 8));
    } else {
      const double share = (fits - 1) / 3;
      CHECK(near(table.frequencies[i], before * (share + (1 - share) / 8)));
      ++blended;
    }
  }
  CHECK(kept == 29);
  CHECK(blended == 6);
}

TEST_CASE("a file's divisors divide the frequencies, and stand in for Llama 3.1's blend") {
  rope_settings rope;
  rope.divisors = {1, 2, 4, 8};
  const auto plain = make_rope_table({}, 8);
  const auto table = make_rope_table(rope, 8);
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(near(table.frequencies[i], static_cast<double>(plain.frequencies[i]) / std::exp2(i)));

  rope.scaling = rope_scaling::llama3;
  rope.factor = 8;
  rope.original_context = 64;
  CHECK(make_rope_table(rope, 8).frequencies == table.frequencies);
}

TEST_CASE("an odd head size or a wrong number of divisors fails a check") {
  CHECK_THROWS_AS(make_rope_table({}, 7), check_failed);
  rope_settings rope;
  rope.divisors = {1, 2, 3};
  CHECK_THROWS_AS(make_rope_table(rope, 8), check_failed);
}
