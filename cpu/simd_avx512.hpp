// simd_plain.hpp's operations on 512-bit registers. Needs AVX-512 F, DQ and VL.
#pragma once
#include <cstdint>
#include <cstring>
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

  static reg load_bfloat(const std::uint16_t* p) noexcept {
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))), 16));
  }
  static void store_bfloat(std::uint16_t* p, reg x) noexcept {
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i upper = _mm512_srli_epi32(_mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff))), 16);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        _mm512_cvtepi32_epi16(_mm512_mask_mov_epi32(upper, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q),
                                                                    _mm512_set1_epi32(0x7fc0))));
  }
  static reg set_upper(std::uint32_t pair) noexcept {
    return _mm512_castsi512_ps(
        _mm512_and_si512(_mm512_set1_epi32(static_cast<int>(pair)), _mm512_set1_epi32(static_cast<int>(0xffff'0000u))));
  }
  static reg set_lower(std::uint32_t pair) noexcept {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_set1_epi32(static_cast<int>(pair)), 16));
  }
  static reg load_bytes(const std::int8_t* p) noexcept {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  }
  static void store_bytes(std::int8_t* p, reg x) noexcept {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(x)));
  }
  // Of 64 bits, the lower half holds the even numbers and the upper half the odd ones: as a broadcast lays them out.
  static reg load_nibbles(const std::uint8_t* p) noexcept {
    long long words;
    std::memcpy(&words, p, sizeof words);
    const __m512i n = _mm512_srlv_epi32(_mm512_set1_epi64(words), nibble_shifts());
    return _mm512_cvtepi32_ps(_mm512_and_si512(n, _mm512_set1_epi32(15)));
  }
  static void store_nibbles(std::uint8_t* p, reg x) noexcept {
    const __m512i n = _mm512_sllv_epi32(_mm512_cvtps_epi32(x), nibble_shifts());
    const __m256i h = _mm256_or_si256(_mm512_castsi512_si256(n), _mm512_extracti64x4_epi64(n, 1));
    __m128i w = _mm_or_si128(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1));
    w = _mm_or_si128(w, _mm_srli_si128(w, 8));
    const long long words = _mm_cvtsi128_si64(w);
    std::memcpy(p, &words, sizeof words);
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
  static __m512i nibble_shifts() noexcept {
    return _mm512_setr_epi32(0, 0, 4, 4, 8, 8, 12, 12, 16, 16, 20, 20, 24, 24, 28, 28);
  }
  static __m256 fold(reg x) noexcept { return _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1)); }
  static float sum8(__m256 x) noexcept {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_shuffle_ps(s, s, 1)));
  }
};

} // namespace troupe::cpu
