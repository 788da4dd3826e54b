// Floats to blocks of 256: scales of groups by least squares, then quantised themselves, then the weights rounded to what the
// stored scales can say.
#include <algorithm>
#include <cmath>

#include "model/weight_types_blocks.hpp"
#include "model/weight_types_half.hpp"

namespace troupe::blocks {

namespace {

// `value` rounded to a whole number in [low, high]; NaN gives low.
int nearest(float value, int low, int high) noexcept {
  if (!(value > static_cast<float>(low)))
    return low;
  return value < static_cast<float>(high) ? static_cast<int>(std::lrint(value)) : high;
}

float inverse(float d) noexcept {
  return d != 0.0f ? 1.0f / d : 0.0f;
}

struct group_fit {
  float scale;   // >= 0
  float minimum; // >= 0; w = scale q - minimum
};

// Fits 32 weights by levels [0, top]. Starts from the range, then alternates rounding and the least-squares line through
// (level, weight): two rounds take most of the gain, more change little.
group_fit fit_group(const float* w, int top) noexcept {
  const auto [lowest, highest] = std::minmax_element(w, w + 32);
  group_fit best{(*highest - std::min(*lowest, 0.0f)) / static_cast<float>(top), -std::min(*lowest, 0.0f)};
  best.scale = std::max(best.scale, 0.0f);
  const auto error_of = [&](group_fit fit) {
    const float id = inverse(fit.scale);
    float sum = 0.0f;
    for (int j = 0; j < 32; ++j) {
      const auto q = static_cast<float>(nearest((w[j] + fit.minimum) * id, 0, top));
      const float difference = fit.scale * q - fit.minimum - w[j];
      sum += difference * difference;
    }
    return sum;
  };
  float least = error_of(best);
  group_fit fit = best;
  for (int round = 0; round < 2; ++round) {
    const float id = inverse(fit.scale);
    float sum_q = 0, sum_qq = 0, sum_w = 0, sum_qw = 0;
    for (int j = 0; j < 32; ++j) {
      const auto q = static_cast<float>(nearest((w[j] + fit.minimum) * id, 0, top));
      sum_q += q;
      sum_qq += q * q;
      sum_w += w[j];
      sum_qw += q * w[j];
    }
    const float determinant = 32.0f * sum_qq - sum_q * sum_q;
    if (!(determinant > 0.0f))
      break;
    fit.scale = (32.0f * sum_qw - sum_q * sum_w) / determinant;
    fit.minimum = -(sum_w - fit.scale * sum_q) / 32.0f;
    if (fit.minimum < 0.0f) { // the format has no positive floor: a line through the origin
      fit.minimum = 0.0f;
      fit.scale = sum_qq > 0.0f ? sum_qw / sum_qq : 0.0f;
    }
    if (!(fit.scale > 0.0f))
      break;
    const float error = error_of(fit);
    if (!(error < least))
      break;
    least = error;
    best = fit;
  }
  return best;
}

// The inverse of unpack_6_bit in weight_types_expand.cpp.
void put_6_bit(const int* scales, const int* minima, std::byte* to) noexcept {
  for (int j = 0; j < 4; ++j) {
    to[j] = static_cast<std::byte>(scales[j] | (scales[j + 4] >> 4) << 6);
    to[j + 4] = static_cast<std::byte>(minima[j] | (minima[j + 4] >> 4) << 6);
    to[j + 8] = static_cast<std::byte>((scales[j + 4] & 15) | (minima[j + 4] & 15) << 4);
  }
}

// Writes d, dmin and the 12 bytes of scales, and the level of every weight.
void pack_groups(const float* w, int top, std::byte* to, int* levels) noexcept {
  group_fit fits[8];
  float scale_max = 0.0f, minimum_max = 0.0f;
  for (int group = 0; group < 8; ++group) {
    fits[group] = fit_group(w + 32 * group, top);
    scale_max = std::max(scale_max, fits[group].scale);
    minimum_max = std::max(minimum_max, fits[group].minimum);
  }
  store(to, float_to_half(scale_max / 63.0f));
  store(to + 2, float_to_half(minimum_max / 63.0f));
  const float d = half_to_float(load<std::uint16_t>(to)); // as the reader will see them
  const float dmin = half_to_float(load<std::uint16_t>(to + 2));
  int scales[8], minima[8];
  for (int group = 0; group < 8; ++group) {
    scales[group] = nearest(fits[group].scale * inverse(d), 0, 63);
    minima[group] = nearest(fits[group].minimum * inverse(dmin), 0, 63);
    const float id = inverse(d * static_cast<float>(scales[group]));
    const float offset = dmin * static_cast<float>(minima[group]);
    for (int j = 0; j < 32; ++j)
      levels[32 * group + j] = nearest((w[32 * group + j] + offset) * id, 0, top);
  }
  put_6_bit(scales, minima, to + 4);
}

} // namespace

void pack_q4_k(const float* from, std::byte* to, std::int64_t blocks) noexcept {
  for (int levels[256]; blocks > 0; --blocks, from += 256, to += 144) {
    pack_groups(from, 15, to, levels);
    for (int pair = 0; pair < 4; ++pair)
      for (int j = 0; j < 32; ++j)
        to[16 + 32 * pair + j] = static_cast<std::byte>(levels[64 * pair + j] | levels[64 * pair + 32 + j] << 4);
  }
}

void pack_q5_k(const float* from, std::byte* to, std::int64_t blocks) noexcept {
  for (int levels[256]; blocks > 0; --blocks, from += 256, to += 176) {
    pack_groups(from, 31, to, levels);
    for (int j = 0; j < 32; ++j) {
      int fifth = 0;
      for (int group = 0; group < 8; ++group)
        fifth |= (levels[32 * group + j] >> 4) << group;
      to[16 + j] = static_cast<std::byte>(fifth);
      for (int pair = 0; pair < 4; ++pair)
        to[48 + 32 * pair + j] = static_cast<std::byte>((levels[64 * pair + j] & 15) | (levels[64 * pair + 32 + j] & 15) << 4);
    }
  }
}

void pack_q6_k(const float* from, std::byte* to, std::int64_t blocks) noexcept {
  for (; blocks > 0; --blocks, from += 256, to += 210) {
    float wanted[16];
    float extreme = 0.0f;
    for (int group = 0; group < 16; ++group) {
      float w_extreme = 0.0f;
      for (int j = 0; j < 16; ++j)
        if (std::fabs(from[16 * group + j]) > std::fabs(w_extreme))
          w_extreme = from[16 * group + j];
      wanted[group] = w_extreme / -32.0f; // the extreme takes the level that exists on one side only
      if (std::fabs(wanted[group]) > std::fabs(extreme))
        extreme = wanted[group];
    }
    store(to + 208, float_to_half(extreme / -128.0f));
    const float d = half_to_float(load<std::uint16_t>(to + 208));
    std::fill(to, to + 192, std::byte{0});
    for (int group = 0; group < 16; ++group) {
      const int scale = nearest(wanted[group] * inverse(d), -128, 127);
      to[192 + group] = static_cast<std::byte>(scale);
      const float id = inverse(d * static_cast<float>(scale));
      for (int j = 0; j < 16; ++j) {
        const int position = 16 * group + j;
        const int level = nearest(from[position] * id, -32, 31) + 32;
        const int half = position / 128, k = position % 128 / 32, l = position % 32;
        to[64 * half + l + 32 * (k % 2)] |= static_cast<std::byte>((level & 15) << (k < 2 ? 0 : 4));
        to[128 + 32 * half + l] |= static_cast<std::byte>((level >> 4) << (2 * k));
      }
    }
  }
}

} // namespace troupe::blocks
