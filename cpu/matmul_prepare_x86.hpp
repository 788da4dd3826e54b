// plain_prepare's q8 with AVX2; the same bytes, scales and sums for finite rows.
#pragma once
#include <immintrin.h>

#include "cpu/matmul_prepare_plain.hpp"

namespace troupe::cpu {
namespace {

template <int G>
struct x86_prepare {
  static float largest_magnitude(const __m256 (&x)[4]) noexcept {
    // As integers: ordered as the magnitudes, with NaN above all.
    const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
    const auto bits = [&](int i) { return _mm256_and_si256(_mm256_castps_si256(x[i]), magnitude); };
    const __m256i eight = _mm256_max_epi32(_mm256_max_epi32(bits(0), bits(1)), _mm256_max_epi32(bits(2), bits(3)));
    __m128i four = _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0xb1));
    return _mm_cvtss_f32(_mm_castsi128_ps(four));
  }

  static void q8(const float* x, std::int64_t columns, std::byte* group, int slot) noexcept {
    for (std::int64_t c = 0; c < columns; c += 32, group += G * 48) {
      const __m256 values[4] = {_mm256_loadu_ps(x + c), _mm256_loadu_ps(x + c + 8), _mm256_loadu_ps(x + c + 16),
                                _mm256_loadu_ps(x + c + 24)};
      const float top = largest_magnitude(values);
      std::uint32_t most;
      std::memcpy(&most, &top, 4);
      const __m256 inverse = _mm256_set1_ps(most >= tiny_bits && most < 0x7f800000 ? 127.0f / top : 0.0f);
      const auto rounded = [&](int i) { return _mm256_cvtps_epi32(_mm256_mul_ps(values[i], inverse)); };
      const __m256i low = _mm256_packs_epi32(rounded(0), rounded(1));
      const __m256i high = _mm256_packs_epi32(rounded(2), rounded(3));
      const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7); // packs work within 128-bit halves
      const __m256i q = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), order);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(group + slot * 32), q);
      __m256i sums = _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(1), q), _mm256_set1_epi16(1));
      sums = _mm256_add_epi32(sums, _mm256_shuffle_epi32(sums, 0x4e));
      sums = _mm256_add_epi32(sums, _mm256_shuffle_epi32(sums, 0xb1));
      const std::int32_t half[2] = {_mm256_cvtsi256_si32(sums), _mm256_extract_epi32(sums, 4)};
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
