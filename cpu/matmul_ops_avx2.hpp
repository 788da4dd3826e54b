// Vector operations on AVX2, FMA and F16C: 8 lanes.
//
// Byte products: vpmaddubsw adds two unsigned x signed products to 16 bits and saturates. With weights below 1 << Bits and
// |x| <= 127 a few of them (dot::exact) can be summed before vpmaddwd widens to 32 bits: nothing ever saturates.
// Signed bytes are multiplied as |w| * (x with w's sign): at most 2 * 128 * 127 = 32512, exact.
#pragma once
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace troupe::cpu {
namespace {

#define TROUPE_OP [[gnu::always_inline]] static inline

struct avx2_ops {
  static constexpr int lanes = 8;
  static constexpr int group_rows = 4;
  static constexpr int byte_bias = 0;
  static constexpr bool bf16_rows = false;
  static constexpr int prefetch_rows = 2, prefetch_bytes = 1024; // measured on Zen 1: 1 row of Q4_1 8.1 to 11.2 GB/s
  // Two streams of weights for few rows; one tile else, which keeps all sums in 16 registers.
  static constexpr int block_tiles(int rows, bool) { return rows <= 2 ? 2 : 1; }
  static constexpr int plain_tiles(int rows) { return rows <= 2 ? 4 : 2; }

  using f32 = __m256;
  using i32 = __m256i;
  using bytes = __m256i;

  TROUPE_OP f32 zero() noexcept { return _mm256_setzero_ps(); }
  TROUPE_OP f32 splat(float x) noexcept { return _mm256_set1_ps(x); }
  TROUPE_OP f32 load(const float* p) noexcept { return _mm256_loadu_ps(p); }
  TROUPE_OP void store(float* p, f32 x) noexcept { _mm256_storeu_ps(p, x); }
  TROUPE_OP f32 mul(f32 a, f32 b) noexcept { return _mm256_mul_ps(a, b); }
  TROUPE_OP f32 fma(f32 a, f32 b, f32 c) noexcept { return _mm256_fmadd_ps(a, b, c); }
  TROUPE_OP f32 fma_negated(f32 a, f32 b, f32 c) noexcept { return _mm256_fnmadd_ps(a, b, c); }
  TROUPE_OP f32 to_float(i32 x) noexcept { return _mm256_cvtepi32_ps(x); }
  TROUPE_OP f32 load_half(const std::byte* p) noexcept {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  TROUPE_OP f32 load_unsigned_bytes(const std::byte* p) noexcept {
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
  }
  TROUPE_OP f32 load_signed_bytes(const std::byte* p) noexcept {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
  }
  TROUPE_OP bytes load_bytes(const std::byte* p) noexcept { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  TROUPE_OP bytes low_nibbles(bytes x) noexcept { return _mm256_and_si256(x, _mm256_set1_epi8(15)); }
  TROUPE_OP bytes high_nibbles(bytes x) noexcept { return _mm256_and_si256(_mm256_srli_epi16(x, 4), _mm256_set1_epi8(15)); }
  TROUPE_OP __m256i splat_bytes(const std::byte* p) noexcept {
    return _mm256_castps_si256(_mm256_broadcast_ss(reinterpret_cast<const float*>(p)));
  }

  // Emits nothing: makes the compiler finish the sum here. GCC else puts the additions off until it has no registers left for
  // their operands.
  TROUPE_OP void keep_here(__m256i& sum) noexcept { asm volatile("" : "+x"(sum)); }

  template <int Bits>
  struct dot {
    static constexpr int exact = 1 << (7 - Bits); // 4: 8, 5: 4, 6: 2 sums of pairs stay within 16 bits
    static_assert(exact * 2 * ((1 << Bits) - 1) * 127 <= 32767);
    __m256i narrow, wide;
    using weights = bytes;
    TROUPE_OP weights prepare(bytes w) noexcept { return w; }
    [[gnu::always_inline]] inline void add(int index, weights w, __m256i x) noexcept {
      const __m256i product = _mm256_maddubs_epi16(w, x);
      narrow = index % exact == 0 ? product : _mm256_add_epi16(narrow, product);
      keep_here(narrow);
      if (index % exact == exact - 1) {
        const __m256i sum = _mm256_madd_epi16(narrow, _mm256_set1_epi16(1));
        wide = index < exact ? sum : _mm256_add_epi32(wide, sum);
      }
    }
    [[gnu::always_inline]] inline i32 total() const noexcept { return wide; }
    [[gnu::always_inline]] inline i32 total(int correction) const noexcept {
      return _mm256_sub_epi32(wide, _mm256_set1_epi32(correction));
    }
  };

  TROUPE_OP f32 first_of_pair(bytes pair) noexcept { return _mm256_castsi256_ps(_mm256_slli_epi32(pair, 16)); }
  TROUPE_OP f32 second_of_pair(bytes pair) noexcept {
    return _mm256_castsi256_ps(_mm256_and_si256(pair, _mm256_set1_epi32(static_cast<int>(0xffff0000u))));
  }
};

template <>
struct avx2_ops::dot<8> {
  __m256i wide;
  struct weights {
    __m256i value, magnitude;
  };
  TROUPE_OP weights prepare(bytes w) noexcept { return {w, _mm256_abs_epi8(w)}; }
  [[gnu::always_inline]] inline void add(int index, weights w, __m256i x) noexcept {
    const __m256i pairs = _mm256_maddubs_epi16(w.magnitude, _mm256_sign_epi8(x, w.value));
    const __m256i sum = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
    wide = index == 0 ? sum : _mm256_add_epi32(wide, sum);
    keep_here(wide);
  }
  [[gnu::always_inline]] inline i32 total() const noexcept { return wide; }
  [[gnu::always_inline]] inline i32 total(int correction) const noexcept {
    return _mm256_sub_epi32(wide, _mm256_set1_epi32(correction));
  }
};

#undef TROUPE_OP

} // namespace
} // namespace troupe::cpu
