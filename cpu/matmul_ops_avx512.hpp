// Vector operations on AVX-512 F/BW/DQ/VL with VNNI and BF16: 16 lanes. plain_ops means the same in portable C++.
#pragma once
#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace troupe::cpu {
namespace {

#define TROUPE_OP [[gnu::always_inline]] static inline

struct avx512_ops {
  static constexpr int lanes = 16;
  static constexpr int group_rows = 6;
  static constexpr int byte_bias = 128;
  static constexpr bool bf16_rows = true;
  static constexpr int prefetch_rows = 2, prefetch_bytes = 1024;
  // 2 x 6 integer and 2 x 6 float sums, or 4 x 6 float sums, beside weights, in 32 registers; with two integer sums an output
  // one tile.
  static constexpr int block_tiles(int rows, bool two_scales) { return two_scales && rows > 2 ? 1 : 2; }
  static constexpr int plain_tiles(int) { return 4; }

  using f32 = __m512;
  using i32 = __m512i;
  using bytes = __m512i;

  TROUPE_OP f32 zero() noexcept { return _mm512_setzero_ps(); }
  TROUPE_OP f32 splat(float x) noexcept { return _mm512_set1_ps(x); }
  TROUPE_OP f32 load(const float* p) noexcept { return _mm512_loadu_ps(p); }
  TROUPE_OP void store(float* p, f32 x) noexcept { _mm512_storeu_ps(p, x); }
  TROUPE_OP f32 mul(f32 a, f32 b) noexcept { return _mm512_mul_ps(a, b); }
  TROUPE_OP f32 fma(f32 a, f32 b, f32 c) noexcept { return _mm512_fmadd_ps(a, b, c); }
  TROUPE_OP f32 fma_negated(f32 a, f32 b, f32 c) noexcept { return _mm512_fnmadd_ps(a, b, c); }
  TROUPE_OP f32 to_float(i32 x) noexcept { return _mm512_cvtepi32_ps(x); }
  TROUPE_OP f32 load_half(const std::byte* p) noexcept {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  TROUPE_OP f32 load_unsigned_bytes(const std::byte* p) noexcept {
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  }
  TROUPE_OP f32 load_signed_bytes(const std::byte* p) noexcept {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  }
  TROUPE_OP bytes load_bytes(const std::byte* p) noexcept { return _mm512_loadu_si512(p); }
  TROUPE_OP bytes low_nibbles(bytes x) noexcept { return _mm512_and_si512(x, _mm512_set1_epi8(15)); }
  TROUPE_OP bytes high_nibbles(bytes x) noexcept { return _mm512_and_si512(_mm512_srli_epi16(x, 4), _mm512_set1_epi8(15)); }
  TROUPE_OP __m512i splat_bytes(const std::byte* p) noexcept {
    int four;
    std::memcpy(&four, p, 4);
    return _mm512_set1_epi32(four);
  }

  template <int Bits>
  struct dot {
    __m512i sum = _mm512_setzero_si512();
    using weights = bytes;
    TROUPE_OP weights prepare(bytes w) noexcept { return w; }
    [[gnu::always_inline]] inline void add(int, weights w, __m512i x) noexcept { sum = _mm512_dpbusd_epi32(sum, w, x); }
    [[gnu::always_inline]] inline i32 total() const noexcept { return sum; }
    [[gnu::always_inline]] inline i32 total(int correction) const noexcept {
      return _mm512_sub_epi32(sum, _mm512_set1_epi32(correction));
    }
  };

  // Called twice, for the high and the low part of the input: one part alone would leave a relative error of 1.7e-3 in a
  // product of normal numbers (two: 2.4e-6), as much as a whole model may have. Two take the arithmetic of f32 and no widening
  // of weights.
  TROUPE_OP f32 dot_bf16(f32 sum, bytes pairs, std::uint32_t x) noexcept {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(pairs),
                            reinterpret_cast<__m512bh>(_mm512_set1_epi32(static_cast<int>(x))));
  }
};

#undef TROUPE_OP

} // namespace
} // namespace troupe::cpu
