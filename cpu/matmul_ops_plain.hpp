// Vector operations in portable C++, with the widths and the meaning of the AVX-512 ones: 16 lanes, VNNI's unsigned x signed
// byte products, bf16 pairs. So the plain kernels are also the rehearsal of the AVX-512 kernels.
//
// Differs from the hardware in one thing: fma rounds twice here.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace troupe::cpu {
namespace {

struct plain_ops {
  static constexpr int lanes = 16;
  static constexpr int group_rows = 3;
  static constexpr int byte_bias = 128;
  static constexpr bool bf16_rows = true;
  static constexpr int prefetch_rows = 0, prefetch_bytes = 1024;
  static constexpr int block_tiles(int rows, bool) { return rows == 1 ? 2 : 1; }
  static constexpr int plain_tiles(int rows) { return rows == 1 ? 2 : 1; }

  struct f32 {
    float v[lanes];
  };
  struct i32 {
    std::int32_t v[lanes];
  };
  struct bytes {
    unsigned char v[lanes * 4];
  };
  struct four_bytes { // the same in every lane
    signed char v[4];
  };

  static f32 zero() noexcept { return splat(0); }
  static f32 splat(float x) noexcept {
    f32 out;
    for (float& o : out.v)
      o = x;
    return out;
  }
  static f32 load(const float* p) noexcept {
    f32 out;
    std::memcpy(out.v, p, sizeof out.v);
    return out;
  }
  static void store(float* p, const f32& x) noexcept { std::memcpy(p, x.v, sizeof x.v); }
  static f32 mul(const f32& a, const f32& b) noexcept {
    f32 out;
    for (int i = 0; i < lanes; ++i)
      out.v[i] = a.v[i] * b.v[i];
    return out;
  }
  static f32 fma(const f32& a, const f32& b, const f32& c) noexcept {
    f32 out;
    for (int i = 0; i < lanes; ++i)
      out.v[i] = a.v[i] * b.v[i] + c.v[i];
    return out;
  }
  static f32 fma_negated(const f32& a, const f32& b, const f32& c) noexcept {
    f32 out;
    for (int i = 0; i < lanes; ++i)
      out.v[i] = c.v[i] - a.v[i] * b.v[i];
    return out;
  }
  static f32 to_float(const i32& x) noexcept {
    f32 out;
    for (int i = 0; i < lanes; ++i)
      out.v[i] = static_cast<float>(x.v[i]);
    return out;
  }
  static float half_to_float(std::uint16_t half) noexcept {
    std::uint32_t bits = static_cast<std::uint32_t>(half & 0x7fff) << 13;
    bits |= (half & 0x7c00) == 0x7c00 ? 0x7f800000u : 0u;
    float value;
    std::memcpy(&value, &bits, 4);
    value *= (half & 0x7c00) == 0x7c00 ? 1.0f : 0x1p112f; // moves the exponent's bias from 15 to 127; exact, subnormals too
    return half & 0x8000 ? -value : value;
  }
  static f32 load_half(const std::byte* p) noexcept {
    std::uint16_t half[lanes];
    std::memcpy(half, p, sizeof half);
    f32 out;
    for (int i = 0; i < lanes; ++i)
      out.v[i] = half_to_float(half[i]);
    return out;
  }
  static f32 load_unsigned_bytes(const std::byte* p) noexcept {
    f32 out;
    for (int i = 0; i < lanes; ++i)
      out.v[i] = static_cast<float>(static_cast<std::uint8_t>(p[i]));
    return out;
  }
  static f32 load_signed_bytes(const std::byte* p) noexcept {
    f32 out;
    for (int i = 0; i < lanes; ++i)
      out.v[i] = static_cast<float>(static_cast<std::int8_t>(p[i]));
    return out;
  }
  static bytes load_bytes(const std::byte* p) noexcept {
    bytes out;
    std::memcpy(out.v, p, sizeof out.v);
    return out;
  }
  static bytes low_nibbles(const bytes& x) noexcept {
    bytes out;
    for (int i = 0; i < lanes * 4; ++i)
      out.v[i] = x.v[i] & 15;
    return out;
  }
  static bytes high_nibbles(const bytes& x) noexcept {
    bytes out;
    for (int i = 0; i < lanes * 4; ++i)
      out.v[i] = static_cast<unsigned char>(x.v[i] >> 4);
    return out;
  }
  static four_bytes splat_bytes(const std::byte* p) noexcept {
    four_bytes out;
    std::memcpy(out.v, p, 4);
    return out;
  }

  template <int Bits>
  struct dot {
    i32 sum{};
    using weights = bytes;
    static const weights& prepare(const bytes& w) noexcept { return w; }
    void add(int, const weights& w, const four_bytes& x) noexcept {
      for (int i = 0; i < lanes; ++i)
        for (int j = 0; j < 4; ++j)
          sum.v[i] += w.v[4 * i + j] * x.v[j];
    }
    i32 total(int correction = 0) const noexcept {
      i32 out;
      for (int i = 0; i < lanes; ++i)
        out.v[i] = sum.v[i] - correction;
      return out;
    }
  };

  static float bf16_to_float(std::uint32_t bits) noexcept {
    bits <<= 16;
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
  }
  static f32 dot_bf16(const f32& sum, const bytes& pairs, std::uint32_t x) noexcept {
    const float x0 = bf16_to_float(x & 0xffff), x1 = bf16_to_float(x >> 16);
    f32 out;
    for (int i = 0; i < lanes; ++i) {
      std::uint32_t pair;
      std::memcpy(&pair, pairs.v + 4 * i, 4);
      out.v[i] = (sum.v[i] + bf16_to_float(pair >> 16) * x1) + bf16_to_float(pair & 0xffff) * x0;
    }
    return out;
  }
};

} // namespace
} // namespace troupe::cpu
