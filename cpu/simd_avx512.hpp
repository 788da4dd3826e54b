// simd_plain.hpp's operations on 512-bit registers. Needs AVX-512 F, DQ and VL.
#pragma once
#include <cstdint>
#include <immintrin.h>

namespace troupe::cpu {

struct simd_avx512 {
  static constexpr int width = 16;
  using reg = __m512;

  static reg set(float x) noexcept { return _mm512_set1_ps(x); }
  static reg load(const float* p) noexcept { return _mm512_loadu_ps(p); }
  static void store(float* p, reg x) noexcept { _mm512_storeu_ps(p, x); }
  static reg load(const std::uint16_t* p) noexcept {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static void store_half(std::uint16_t* p, reg x) noexcept {
    x = min(set(65504.0f), max(set(-65504.0f), x));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
  }

  static reg add(reg a, reg b) noexcept { return _mm512_add_ps(a, b); }
  static reg sub(reg a, reg b) noexcept { return _mm512_sub_ps(a, b); }
  static reg mul(reg a, reg b) noexcept { return _mm512_mul_ps(a, b); }
  static reg div(reg a, reg b) noexcept { return _mm512_div_ps(a, b); }
  static reg fma(reg a, reg b, reg c) noexcept { return _mm512_fmadd_ps(a, b, c); }
  static reg max(reg a, reg b) noexcept { return _mm512_max_ps(a, b); }
  static reg min(reg a, reg b) noexcept { return _mm512_min_ps(a, b); }
  static reg round(reg x) noexcept { return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static reg power_of_2(reg n) noexcept {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127)), 23));
  }
  static reg zero_below(reg x, float limit, reg y) noexcept {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, set(limit), _CMP_NLT_UQ), y);
  }
  static reg swap_pairs(reg x) noexcept { return _mm512_permute_ps(x, 0xb1); }

  static float sum(reg x) noexcept { return sum8(fold(x)); }
  static float highest(reg x) noexcept {
    const __m256 h = _mm256_max_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_shuffle_ps(s, s, 1)));
  }
  static void store_sums(float* out, reg a, reg b, reg c, reg d) noexcept {
    out[0] = sum(a);
    out[1] = sum(b);
    out[2] = sum(c);
    out[3] = sum(d);
  }
  static float square_root(float x) noexcept { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }

private:
  static __m256 fold(reg x) noexcept { return _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1)); }
  static float sum8(__m256 x) noexcept {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_shuffle_ps(s, s, 1)));
  }
};

} // namespace troupe::cpu
