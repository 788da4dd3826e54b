// The product with f32, f16 and bf16 weights: one chain of f32 multiply-adds over the columns.
#pragma once
#include "cpu/matmul_outputs.hpp"

namespace troupe::cpu {
namespace {

template <class ops, weight_type Type>
struct plain_kernel {
  static constexpr int L = ops::lanes;
  static constexpr int G = ops::group_rows;
  static constexpr bool pairs = Type == weight_type::bf16;
  static constexpr bool bf16_dot = pairs && ops::bf16_rows;
  static constexpr int tiles_at_once(int rows) { return ops::plain_tiles(rows); }

  template <int T, int R>
  static void run(const matmul_arguments& a, const std::byte* x, int row, tile_set tiles) noexcept {
    typename ops::f32 sum[T][R];
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t)
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
        sum[t][r] = ops::zero();
    const std::byte* at = a.tiles + static_cast<std::size_t>(tiles.first) * a.tile_bytes;
    const std::size_t distance = static_cast<std::size_t>(tiles.distance) * a.tile_bytes;
    if constexpr (pairs) {
      const std::int64_t steps = (a.columns + 1) / 2;
      for (std::int64_t c = 0; c < steps; ++c, at += L * 4, x += G * 8)
        add_pair<T, R>(sum, at, distance, x);
    } else {
      constexpr int bytes = L * (Type == weight_type::f32 ? 4 : 2);
      for (std::int64_t c = 0; c < a.columns; ++c, at += bytes, x += G * 4)
        add_column<T, R>(sum, at, distance, x);
    }
    store_outputs<ops, T, R>(sum, a, row, tiles);
  }

private:
  template <int T, int R>
  [[gnu::always_inline]] static inline void add_column(typename ops::f32 (&sum)[T][R], const std::byte* at,
                                                       std::size_t distance, const std::byte* x) noexcept {
    const float* values = reinterpret_cast<const float*>(x);
    typename ops::f32 weights[T];
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
      const std::byte* q = at + static_cast<std::size_t>(t) * distance;
      weights[t] = Type == weight_type::f32 ? ops::load(reinterpret_cast<const float*>(q)) : ops::load_half(q);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const auto value = ops::splat(values[r]);
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t)
        sum[t][r] = ops::fma(weights[t], value, sum[t][r]);
    }
  }

  template <int T, int R>
  [[gnu::always_inline]] static inline void add_pair(typename ops::f32 (&sum)[T][R], const std::byte* at, std::size_t distance,
                                                     const std::byte* x) noexcept {
    if constexpr (bf16_dot) {
      const std::uint32_t* values = reinterpret_cast<const std::uint32_t*>(x);
      typename ops::bytes weights[T];
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t)
        weights[t] = ops::load_bytes(at + static_cast<std::size_t>(t) * distance);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
        for (int t = 0; t < T; ++t) {
          sum[t][r] = ops::dot_bf16(sum[t][r], weights[t], values[2 * r]);
          sum[t][r] = ops::dot_bf16(sum[t][r], weights[t], values[2 * r + 1]);
        }
    } else {
      const float* values = reinterpret_cast<const float*>(x);
      typename ops::f32 weights[T];
#pragma GCC unroll 8
      for (int half = 0; half < 2; ++half) {
#pragma GCC unroll 8
        for (int t = 0; t < T; ++t) {
          const auto pair = ops::load_bytes(at + static_cast<std::size_t>(t) * distance);
          weights[t] = half == 0 ? ops::first_of_pair(pair) : ops::second_of_pair(pair);
        }
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
          const auto value = ops::splat(values[half * G + r]);
#pragma GCC unroll 8
          for (int t = 0; t < T; ++t)
            sum[t][r] = ops::fma(weights[t], value, sum[t][r]);
        }
      }
    }
  }
};

} // namespace
} // namespace troupe::cpu
