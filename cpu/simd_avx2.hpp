// simd_plain.hpp's operations on 256-bit registers. Needs AVX2, FMA and F16C.
#pragma once
#include <cstdint>
#include <cstring>
#include <immintrin.h>

namespace troupe::cpu {

struct simd_avx2 {
  static constexpr int width = 8;
  using reg = __m256;

  static reg set(float x) noexcept { return _mm256_set1_ps(x); }
  static reg load(const float* p) noexcept { return _mm256_loadu_ps(p); }
  static void store(float* p, reg x) noexcept { _mm256_storeu_ps(p, x); }
  static reg load(const std::uint16_t* p) noexcept {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static void store_half(std::uint16_t* p, reg x) noexcept {
    x = min(set(65504.0f), max(set(-65504.0f), x));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
  }

  static reg load_bfloat(const std::uint16_t* p) noexcept {
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))), 16));
  }
  static void store_bfloat(std::uint16_t* p, reg x) noexcept {
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i upper = _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
    upper = _mm256_blendv_epi8(upper, _mm256_set1_epi32(0x7fc0), _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q)));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                     _mm_packus_epi32(_mm256_castsi256_si128(upper), _mm256_extracti128_si256(upper, 1)));
  }
  static reg set_upper(std::uint32_t pair) noexcept {
    return _mm256_castsi256_ps(
        _mm256_and_si256(_mm256_set1_epi32(static_cast<int>(pair)), _mm256_set1_epi32(static_cast<int>(0xffff'0000u))));
  }
  static reg set_lower(std::uint32_t pair) noexcept {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_set1_epi32(static_cast<int>(pair)), 16));
  }
  static reg load_bytes(const std::int8_t* p) noexcept {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
  }
  static void store_bytes(std::int8_t* p, reg x) noexcept {
    const __m256i n = _mm256_cvtps_epi32(x);
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(n), _mm256_extracti128_si256(n, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packs_epi16(words, words));
  }
  // Number i is nibble i of 32 bits.
  static reg load_nibbles(const std::uint8_t* p) noexcept {
    int word;
    std::memcpy(&word, p, sizeof word);
    const __m256i n = _mm256_srlv_epi32(_mm256_set1_epi32(word), nibble_shifts());
    return _mm256_cvtepi32_ps(_mm256_and_si256(n, _mm256_set1_epi32(15)));
  }
  static void store_nibbles(std::uint8_t* p, reg x) noexcept {
    const __m256i n = _mm256_sllv_epi32(_mm256_cvtps_epi32(x), nibble_shifts());
    __m128i w = _mm_or_si128(_mm256_castsi256_si128(n), _mm256_extracti128_si256(n, 1));
    w = _mm_or_si128(w, _mm_srli_si128(w, 8));
    w = _mm_or_si128(w, _mm_srli_si128(w, 4));
    const int word = _mm_cvtsi128_si32(w);
    std::memcpy(p, &word, sizeof word);
  }

  static reg add(reg a, reg b) noexcept { return _mm256_add_ps(a, b); }
  static reg sub(reg a, reg b) noexcept { return _mm256_sub_ps(a, b); }
  static reg mul(reg a, reg b) noexcept { return _mm256_mul_ps(a, b); }
  static reg div(reg a, reg b) noexcept { return _mm256_div_ps(a, b); }
  static reg fma(reg a, reg b, reg c) noexcept { return _mm256_fmadd_ps(a, b, c); }
  static reg max(reg a, reg b) noexcept { return _mm256_max_ps(a, b); }
  static reg min(reg a, reg b) noexcept { return _mm256_min_ps(a, b); }
  static reg round(reg x) noexcept { return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static reg power_of_2(reg n) noexcept {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23));
  }
  static reg zero_below(reg x, float limit, reg y) noexcept {
    return _mm256_andnot_ps(_mm256_cmp_ps(x, set(limit), _CMP_LT_OQ), y);
  }
  static reg swap_pairs(reg x) noexcept { return _mm256_permute_ps(x, 0xb1); }

  static float sum(reg x) noexcept {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_shuffle_ps(s, s, 1)));
  }
  static float highest(reg x) noexcept {
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_shuffle_ps(s, s, 1)));
  }
  static void store_sums(float* out, reg a, reg b, reg c, reg d) noexcept {
    const __m256 ab = _mm256_add_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
    const __m256 cd = _mm256_add_ps(_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
    const __m256 low = _mm256_castpd_ps(_mm256_unpacklo_pd(_mm256_castps_pd(ab), _mm256_castps_pd(cd)));
    const __m256 high = _mm256_castpd_ps(_mm256_unpackhi_pd(_mm256_castps_pd(ab), _mm256_castps_pd(cd)));
    const __m256 abcd = _mm256_add_ps(low, high);
    _mm_storeu_ps(out, _mm_add_ps(_mm256_castps256_ps128(abcd), _mm256_extractf128_ps(abcd, 1)));
  }
  static float square_root(float x) noexcept { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }

private:
  static __m256i nibble_shifts() noexcept { return _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28); }
};

} // namespace troupe::cpu
