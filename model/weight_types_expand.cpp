// The block layouts as GGUF defines them, and what each stands for. This is the specification that fast kernels are tested
// against: written to be read, one weight at a time.
#include "model/weight_types_blocks.hpp"
#include "model/weight_types_half.hpp"

namespace troupe::blocks {

namespace {

int low_nibble(std::byte b) noexcept {
  return std::to_integer<int>(b & std::byte{15});
}
int high_nibble(std::byte b) noexcept {
  return std::to_integer<int>(b >> 4);
}
int signed_byte(std::byte b) noexcept {
  return static_cast<std::int8_t>(b);
}

// Scale and minimum `j` (of 8) out of 12 bytes of 6-bit numbers: bytes 0-3 hold scales 0-3, bytes 4-7 minima 0-3, bytes 8-11
// the low nibbles of scales and minima 4-7, whose upper two bits stand in the spare bits of bytes 0-7.
struct scale_and_minimum {
  int scale;
  int minimum;
};
scale_and_minimum unpack_6_bit(const std::byte* s, int j) noexcept {
  const auto at = [s](int i) { return std::to_integer<int>(s[i]); };
  if (j < 4)
    return {at(j) & 63, at(j + 4) & 63};
  return {(at(j + 4) & 15) | ((at(j - 4) >> 6) << 4), (at(j + 4) >> 4) | ((at(j) >> 6) << 4)};
}

} // namespace

// f16 d; 16 bytes: weight j in the low nibble of byte j, weight j + 16 in the high one. w = (q - 8) d
void expand_q4_0(const std::byte* from, float* to, std::int64_t blocks) noexcept {
  for (; blocks > 0; --blocks, from += 18, to += 32) {
    const float d = half_to_float(load<std::uint16_t>(from));
    for (int j = 0; j < 16; ++j) {
      to[j] = static_cast<float>(low_nibble(from[2 + j]) - 8) * d;
      to[j + 16] = static_cast<float>(high_nibble(from[2 + j]) - 8) * d;
    }
  }
}

// f16 d, f16 m; nibbles as Q4_0. w = q d + m
void expand_q4_1(const std::byte* from, float* to, std::int64_t blocks) noexcept {
  for (; blocks > 0; --blocks, from += 20, to += 32) {
    const float d = half_to_float(load<std::uint16_t>(from));
    const float m = half_to_float(load<std::uint16_t>(from + 2));
    for (int j = 0; j < 16; ++j) {
      to[j] = static_cast<float>(low_nibble(from[4 + j])) * d + m;
      to[j + 16] = static_cast<float>(high_nibble(from[4 + j])) * d + m;
    }
  }
}

// f16 d; u32 whose bit j is the fifth bit of weight j; nibbles as Q4_0. w = (q - 16) d
void expand_q5_0(const std::byte* from, float* to, std::int64_t blocks) noexcept {
  for (; blocks > 0; --blocks, from += 22, to += 32) {
    const float d = half_to_float(load<std::uint16_t>(from));
    const auto fifth = load<std::uint32_t>(from + 2);
    for (int j = 0; j < 16; ++j) {
      const int low = low_nibble(from[6 + j]) | static_cast<int>((fifth >> j) & 1u) << 4;
      const int high = high_nibble(from[6 + j]) | static_cast<int>((fifth >> (j + 16)) & 1u) << 4;
      to[j] = static_cast<float>(low - 16) * d;
      to[j + 16] = static_cast<float>(high - 16) * d;
    }
  }
}

// f16 d, f16 m; fifth bits and nibbles as Q5_0. w = q d + m
void expand_q5_1(const std::byte* from, float* to, std::int64_t blocks) noexcept {
  for (; blocks > 0; --blocks, from += 24, to += 32) {
    const float d = half_to_float(load<std::uint16_t>(from));
    const float m = half_to_float(load<std::uint16_t>(from + 2));
    const auto fifth = load<std::uint32_t>(from + 4);
    for (int j = 0; j < 16; ++j) {
      const int low = low_nibble(from[8 + j]) | static_cast<int>((fifth >> j) & 1u) << 4;
      const int high = high_nibble(from[8 + j]) | static_cast<int>((fifth >> (j + 16)) & 1u) << 4;
      to[j] = static_cast<float>(low) * d + m;
      to[j + 16] = static_cast<float>(high) * d + m;
    }
  }
}

// f16 d; 32 signed bytes. w = q d
void expand_q8_0(const std::byte* from, float* to, std::int64_t blocks) noexcept {
  for (; blocks > 0; --blocks, from += 34, to += 32) {
    const float d = half_to_float(load<std::uint16_t>(from));
    for (int j = 0; j < 32; ++j)
      to[j] = static_cast<float>(signed_byte(from[2 + j])) * d;
  }
}

// f16 d, f16 dmin; 12 bytes of 6-bit scales and minima for 8 groups of 32; 128 bytes: each 32 hold two groups, the first in the
// low nibbles. w = d scale q - dmin minimum
void expand_q4_k(const std::byte* from, float* to, std::int64_t blocks) noexcept {
  for (; blocks > 0; --blocks, from += 144, to += 256) {
    const float d = half_to_float(load<std::uint16_t>(from));
    const float dmin = half_to_float(load<std::uint16_t>(from + 2));
    for (int group = 0; group < 8; ++group) {
      const auto [scale, minimum] = unpack_6_bit(from + 4, group);
      const float step = d * static_cast<float>(scale);
      const float offset = dmin * static_cast<float>(minimum);
      const std::byte* q = from + 16 + (group / 2) * 32;
      for (int j = 0; j < 32; ++j) {
        const int level = group % 2 == 0 ? low_nibble(q[j]) : high_nibble(q[j]);
        to[group * 32 + j] = step * static_cast<float>(level) - offset;
      }
    }
  }
}

// As Q4_K with 32 bytes of fifth bits before the nibbles: bit `group` of byte j belongs to weight j of that group.
void expand_q5_k(const std::byte* from, float* to, std::int64_t blocks) noexcept {
  for (; blocks > 0; --blocks, from += 176, to += 256) {
    const float d = half_to_float(load<std::uint16_t>(from));
    const float dmin = half_to_float(load<std::uint16_t>(from + 2));
    const std::byte* fifth = from + 16;
    for (int group = 0; group < 8; ++group) {
      const auto [scale, minimum] = unpack_6_bit(from + 4, group);
      const float step = d * static_cast<float>(scale);
      const float offset = dmin * static_cast<float>(minimum);
      const std::byte* q = from + 48 + (group / 2) * 32;
      for (int j = 0; j < 32; ++j) {
        const int low = group % 2 == 0 ? low_nibble(q[j]) : high_nibble(q[j]);
        const int level = low | (std::to_integer<int>(fifth[j] >> group) & 1) << 4;
        to[group * 32 + j] = step * static_cast<float>(level) - offset;
      }
    }
  }
}

// 128 bytes of low nibbles, 64 bytes of upper two bits, 16 signed scales (one for 16 weights), f16 d last. Each half of 128
// weights takes 64 and 32 of them: weight 32 k + l (k < 4) has its nibble in byte l + 32 (k mod 2), low for k < 2, and its
// upper bits at bit 2 k of byte l. w = d scale (q - 32)
void expand_q6_k(const std::byte* from, float* to, std::int64_t blocks) noexcept {
  for (; blocks > 0; --blocks, from += 210, to += 256) {
    const float d = half_to_float(load<std::uint16_t>(from + 208));
    for (int half = 0; half < 2; ++half) {
      const std::byte* nibbles = from + 64 * half;
      const std::byte* upper = from + 128 + 32 * half;
      const std::byte* scales = from + 192 + 8 * half;
      for (int k = 0; k < 4; ++k)
        for (int l = 0; l < 32; ++l) {
          const std::byte b = nibbles[l + 32 * (k % 2)];
          const int low = k < 2 ? low_nibble(b) : high_nibble(b);
          const int level = (low | (std::to_integer<int>(upper[l] >> (2 * k)) & 3) << 4) - 32;
          const float step = d * static_cast<float>(signed_byte(scales[2 * k + l / 16]));
          to[128 * half + 32 * k + l] = step * static_cast<float>(level);
        }
    }
  }
}

} // namespace troupe::blocks
