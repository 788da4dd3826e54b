// Floats to blocks of 32. The arithmetic, roundings included, is that of ggml's reference quantiser, so that the bytes agree.
#include <algorithm>
#include <cmath>

#include "model/weight_types_blocks.hpp"
#include "model/weight_types_half.hpp"

namespace troupe::blocks {

namespace {

// `value` cut to a whole number in [0, top]; NaN gives 0.
int level(double value, int top) noexcept {
  if (!(value > 0.0))
    return 0;
  return value < top ? static_cast<int>(value) : top;
}

float inverse(float d) noexcept {
  return d != 0.0f ? 1.0f / d : 0.0f;
}

// The weight of the greatest magnitude, with its sign; the first one where several share it.
float signed_extreme(const float* w) noexcept {
  float extreme = 0.0f;
  for (int j = 0; j < 32; ++j)
    if (std::fabs(w[j]) > std::fabs(extreme))
      extreme = w[j];
  return extreme;
}

// Low nibbles hold levels 0-15, high nibbles 16-31; the fifth bits, where wanted, go into `fifth`.
void put_nibbles(const int* levels, std::byte* to, std::uint32_t* fifth) noexcept {
  for (int j = 0; j < 16; ++j)
    to[j] = static_cast<std::byte>((levels[j] & 15) | (levels[j + 16] & 15) << 4);
  if (fifth == nullptr)
    return;
  *fifth = 0;
  for (int j = 0; j < 32; ++j)
    *fifth |= static_cast<std::uint32_t>(levels[j] >> 4) << j;
}

// Levels of the symmetric types: the extreme becomes level 0, zero becomes `middle`.
float symmetric(const float* w, int middle, int* levels) noexcept {
  const float d = signed_extreme(w) / static_cast<float>(-middle);
  const double id = inverse(d); // double, so that the product is exact and the result does not hang on fused arithmetic
  for (int j = 0; j < 32; ++j)
    levels[j] = level(w[j] * id + (middle + 0.5), 2 * middle - 1);
  return d;
}

struct step_and_floor {
  float d;
  float m;
};
step_and_floor asymmetric(const float* w, int top, int* levels) noexcept {
  const auto [low, high] = std::minmax_element(w, w + 32);
  const float d = (*high - *low) / static_cast<float>(top);
  const float id = inverse(d);
  for (int j = 0; j < 32; ++j)
    levels[j] = level((w[j] - *low) * id + 0.5f, top);
  return {d, *low};
}

} // namespace

void pack_q4_0(const float* from, std::byte* to, std::int64_t blocks) noexcept {
  for (int levels[32]; blocks > 0; --blocks, from += 32, to += 18) {
    store(to, float_to_half(symmetric(from, 8, levels)));
    put_nibbles(levels, to + 2, nullptr);
  }
}

void pack_q4_1(const float* from, std::byte* to, std::int64_t blocks) noexcept {
  for (int levels[32]; blocks > 0; --blocks, from += 32, to += 20) {
    const auto [d, m] = asymmetric(from, 15, levels);
    store(to, float_to_half(d));
    store(to + 2, float_to_half(m));
    put_nibbles(levels, to + 4, nullptr);
  }
}

void pack_q5_0(const float* from, std::byte* to, std::int64_t blocks) noexcept {
  std::uint32_t fifth;
  for (int levels[32]; blocks > 0; --blocks, from += 32, to += 22) {
    store(to, float_to_half(symmetric(from, 16, levels)));
    put_nibbles(levels, to + 6, &fifth);
    store(to + 2, fifth);
  }
}

void pack_q5_1(const float* from, std::byte* to, std::int64_t blocks) noexcept {
  std::uint32_t fifth;
  for (int levels[32]; blocks > 0; --blocks, from += 32, to += 24) {
    const auto [d, m] = asymmetric(from, 31, levels);
    store(to, float_to_half(d));
    store(to + 2, float_to_half(m));
    put_nibbles(levels, to + 8, &fifth);
    store(to + 4, fifth);
  }
}

void pack_q8_0(const float* from, std::byte* to, std::int64_t blocks) noexcept {
  for (; blocks > 0; --blocks, from += 32, to += 34) {
    const float d = std::fabs(signed_extreme(from)) / 127.0f;
    const float id = inverse(d);
    store(to, float_to_half(d));
    for (int j = 0; j < 32; ++j) {
      const float scaled = from[j] * id; // |scaled| <= 127 but for what is not finite
      const int q = level(std::round(std::fabs(scaled)), 127);
      to[2 + j] = static_cast<std::byte>(scaled < 0.0f ? -q : q);
    }
  }
}

} // namespace troupe::blocks
