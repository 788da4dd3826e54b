// Input rows into the groups that kernels read (layouts in matmul_table.hpp), in portable C++.
//
// q8: scale = max |x| / 127 over 32 columns, bytes rounded to nearest. A row with an infinity or a NaN gets such a scale, and
// so gives non-finite outputs rather than plausible ones.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace troupe::cpu {
namespace {

// A block whose magnitudes all stay below about 1e-30 counts as zero: the inverse of its scale would not be finite.
constexpr std::uint32_t tiny_bits = 0x0e000000;

template <int G>
struct plain_prepare {
  static void f32(const float* x, std::int64_t columns, std::byte* group, int slot) noexcept {
    float* out = reinterpret_cast<float*>(group) + slot;
    for (std::int64_t c = 0; c < columns; ++c)
      out[c * G] = x[c];
    if (columns % 2 != 0)
      out[columns * G] = 0;
  }

  static std::uint32_t to_bf16(float x) noexcept {
    std::uint32_t bits;
    std::memcpy(&bits, &x, 4);
    if ((bits & 0x7fffffff) > 0x7f800000)
      return bits >> 16 | 0x40; // a NaN stays one
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  }

  static void bf16(const float* x, std::int64_t columns, std::byte* group, int slot) noexcept {
    std::uint32_t* out = reinterpret_cast<std::uint32_t*>(group) + 2 * slot;
    for (std::int64_t c = 0; c < columns; c += 2, out += 2 * G) {
      std::uint32_t high[2] = {}, low[2] = {};
      for (int i = 0; i < 2 && c + i < columns; ++i) {
        high[i] = to_bf16(x[c + i]);
        const std::uint32_t bits = high[i] << 16;
        float value;
        std::memcpy(&value, &bits, 4);
        const bool finite = (bits & 0x7f800000) != 0x7f800000;
        low[i] = finite ? to_bf16(x[c + i] - value) : 0;
      }
      out[0] = high[0] | high[1] << 16;
      out[1] = low[0] | low[1] << 16;
    }
  }

  static void q8(const float* x, std::int64_t columns, std::byte* group, int slot) noexcept {
    for (std::int64_t c = 0; c < columns; c += 32, group += G * 48) {
      std::uint32_t most = 0; // of the magnitudes' bits: ordered as the magnitudes, with NaN above all
      for (int i = 0; i < 32; ++i) {
        std::uint32_t bits;
        std::memcpy(&bits, x + c + i, 4);
        bits &= 0x7fffffff;
        most = bits > most ? bits : most;
      }
      float top;
      std::memcpy(&top, &most, 4);
      const float inverse = most >= tiny_bits && most < 0x7f800000 ? 127.0f / top : 0.0f;
      std::int32_t half[2] = {};
      for (int i = 0; i < 32; ++i) {
        // Adding 1.5 * 2^23 rounds to nearest even, whatever the rounding of conversions.
        const float shifted = x[c + i] * inverse + 0x1.8p23f;
        std::int32_t q;
        std::memcpy(&q, &shifted, 4);
        q -= 0x4b400000;
        q = q > 127 ? 127 : q < -127 ? -127 : q;
        group[slot * 32 + i] = static_cast<std::byte>(q);
        half[i / 16] += q;
      }
      const float scale = top / 127.0f;
      const float sum = scale * static_cast<float>(half[0] + half[1]);
      std::memcpy(group + G * 32 + slot * 4, &scale, 4);
      std::memcpy(group + G * 36 + slot * 4, &sum, 4);
      std::memcpy(group + G * 40 + slot * 8, half, 8);
    }
  }
};

} // namespace
} // namespace troupe::cpu
