// Eight floats in portable C++: the meaning of the vector operations that the kernel templates are written in. simd_avx2.hpp
// and simd_avx512.hpp have the same members. Included only by the one translation unit of its instruction set.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

namespace troupe::cpu {

struct simd_plain {
  static constexpr int width = 8;
  struct reg {
    float lane[width];
  };

  template <class F>
  static reg map(F f) noexcept {
    reg r;
    for (int i = 0; i < width; ++i)
      r.lane[i] = f(i);
    return r;
  }

  static reg set(float x) noexcept {
    return map([&](int) { return x; });
  }
  static reg load(const float* p) noexcept {
    return map([&](int i) { return p[i]; });
  }
  static void store(float* p, reg x) noexcept { std::memcpy(p, x.lane, sizeof x.lane); }

  // IEEE half precision.
  static reg load(const std::uint16_t* p) noexcept {
    return map([&](int i) { return widen(p[i]); });
  }
  // Rounds to nearest even; values beyond the largest half become it, so that a stored infinity never appears.
  static void store_half(std::uint16_t* p, reg x) noexcept {
    for (int i = 0; i < width; ++i)
      p[i] = narrow(x.lane[i]);
  }

  // bfloat16, the upper half of a float; rounds to nearest even.
  static reg load_bfloat(const std::uint16_t* p) noexcept {
    return map([&](int i) { return as_float(static_cast<std::uint32_t>(p[i]) << 16); });
  }
  static void store_bfloat(std::uint16_t* p, reg x) noexcept {
    for (int i = 0; i < width; ++i) {
      const std::uint32_t bits = as_bits(x.lane[i]);
      const bool is_number = x.lane[i] == x.lane[i];
      p[i] = is_number ? static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16) : std::uint16_t{0x7fc0};
    }
  }
  // One of a pair of bfloats in every lane.
  static reg set_upper(std::uint32_t pair) noexcept { return set(as_float(pair & 0xffff'0000u)); }
  static reg set_lower(std::uint32_t pair) noexcept { return set(as_float(pair << 16)); }

  // Whole numbers of 8 bits, from -128 to 127.
  static reg load_bytes(const std::int8_t* p) noexcept {
    return map([&](int i) { return static_cast<float>(p[i]); });
  }
  static void store_bytes(std::int8_t* p, reg x) noexcept {
    for (int i = 0; i < width; ++i)
      p[i] = static_cast<std::int8_t>(x.lane[i]);
  }
  // Whole numbers of 4 bits, from 0 to 15, in an order that is the instruction set's own. [width / 2]
  static reg load_nibbles(const std::uint8_t* p) noexcept {
    return map([&](int i) { return static_cast<float>(p[i / 2] >> (i % 2 * 4) & 15); });
  }
  static void store_nibbles(std::uint8_t* p, reg x) noexcept {
    for (int i = 0; i < width; i += 2)
      p[i / 2] = static_cast<std::uint8_t>(static_cast<int>(x.lane[i]) | static_cast<int>(x.lane[i + 1]) << 4);
  }

  static reg add(reg a, reg b) noexcept {
    return map([&](int i) { return a.lane[i] + b.lane[i]; });
  }
  static reg sub(reg a, reg b) noexcept {
    return map([&](int i) { return a.lane[i] - b.lane[i]; });
  }
  static reg mul(reg a, reg b) noexcept {
    return map([&](int i) { return a.lane[i] * b.lane[i]; });
  }
  static reg div(reg a, reg b) noexcept {
    return map([&](int i) { return a.lane[i] / b.lane[i]; });
  }
  // a * b + c
  static reg fma(reg a, reg b, reg c) noexcept {
    return map([&](int i) { return a.lane[i] * b.lane[i] + c.lane[i]; });
  }
  // The second operand where either is NaN.
  static reg max(reg a, reg b) noexcept {
    return map([&](int i) { return a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]; });
  }
  static reg min(reg a, reg b) noexcept {
    return map([&](int i) { return a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i]; });
  }
  // To the nearest whole number; |x| < 2^22.
  static reg round(reg x) noexcept {
    return map([&](int i) {
      volatile float shifted = x.lane[i] + 12582912.0f; // 1.5 * 2^23: the sum has no fraction bits left
      return shifted - 12582912.0f;
    });
  }
  // 2^n for whole n in [-127, 128].
  static reg power_of_2(reg n) noexcept {
    return map([&](int i) {
      const auto bits = static_cast<std::uint32_t>(static_cast<std::int32_t>(n.lane[i] == n.lane[i] ? n.lane[i] : 0.0f) + 127)
                        << 23;
      float f;
      std::memcpy(&f, &bits, sizeof f);
      return f;
    });
  }
  // x < limit ? 0 : y
  static reg zero_below(reg x, float limit, reg y) noexcept {
    return map([&](int i) { return x.lane[i] < limit ? 0.0f : y.lane[i]; });
  }
  // (x1, x0, x3, x2, ...)
  static reg swap_pairs(reg x) noexcept {
    return map([&](int i) { return x.lane[i ^ 1]; });
  }
  static float sum(reg x) noexcept {
    return ((x.lane[0] + x.lane[4]) + (x.lane[2] + x.lane[6])) + ((x.lane[1] + x.lane[5]) + (x.lane[3] + x.lane[7]));
  }
  static float highest(reg x) noexcept {
    float h = x.lane[0];
    for (int i = 1; i < width; ++i)
      h = x.lane[i] > h ? x.lane[i] : h;
    return h;
  }
  // The sums of four registers, side by side.
  static void store_sums(float* out, reg a, reg b, reg c, reg d) noexcept {
    out[0] = sum(a);
    out[1] = sum(b);
    out[2] = sum(c);
    out[3] = sum(d);
  }
  static float square_root(float x) noexcept { return std::sqrt(x); }

private:
  static float as_float(std::uint32_t bits) noexcept {
    float f;
    std::memcpy(&f, &bits, sizeof f);
    return f;
  }
  static std::uint32_t as_bits(float f) noexcept {
    std::uint32_t bits;
    std::memcpy(&bits, &f, sizeof bits);
    return bits;
  }

  static float widen(std::uint16_t h) noexcept {
    const std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000u) << 16;
    const std::uint32_t exponent = (h >> 10) & 0x1fu;
    const std::uint32_t mantissa = h & 0x3ffu;
    if (exponent == 0) { // zero or subnormal: mantissa * 2^-24
      const float f = static_cast<float>(mantissa) * 0x1p-24f;
      return sign ? -f : f;
    }
    const std::uint32_t bits = sign | (exponent == 31 ? 0x7f80'0000u : (exponent + 112) << 23) | (mantissa << 13);
    float f;
    std::memcpy(&f, &bits, sizeof f);
    return f;
  }

  static std::uint16_t narrow(float x) noexcept {
    std::uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
    const std::uint32_t size = bits & 0x7fff'ffffu;
    if (size > 0x7f80'0000u)
      return static_cast<std::uint16_t>(sign | 0x7e00u); // NaN stays NaN
    if (size >= 0x477f'f000u)
      return static_cast<std::uint16_t>(sign | 0x7bffu); // 65504
    if (size < 0x3880'0000u) {                           // below 2^-14: subnormal, in steps of 2^-24
      float magnitude;
      std::memcpy(&magnitude, &size, sizeof magnitude);
      volatile float shifted = magnitude + 0.5f; // one step of 0.5's mantissa is 2^-24
      const float whole = shifted;
      std::uint32_t whole_bits;
      std::memcpy(&whole_bits, &whole, sizeof whole_bits);
      return static_cast<std::uint16_t>(sign | (whole_bits - 0x3f00'0000u));
    }
    const std::uint32_t rounded = size + 0xfffu + ((size >> 13) & 1u) - (112u << 23);
    return static_cast<std::uint16_t>(sign | (rounded >> 13));
  }
};

} // namespace troupe::cpu
