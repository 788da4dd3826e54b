// The product with weights in blocks of 32 (Q8_0, Q4_*, Q5_*, K types): integer sums within a block, exact; one chain of f32
// additions over the blocks.
#pragma once
#include "cpu/matmul_outputs.hpp"

namespace troupe::cpu {
namespace {

// Scales and minima of one block of one tile; each member is used by some forms only.
template <class ops>
struct block_scales {
  typename ops::f32 scale, second, minimum;
};

template <class ops, weight_type Type>
[[gnu::always_inline]] inline block_scales<ops> load_scales(const std::byte* scales, const std::byte* super) noexcept {
  using f = form<Type>;
  constexpr int L = ops::lanes;
  block_scales<ops> s{};
  if constexpr (f::scales == scale_form::half) {
    s.scale = ops::load_half(scales);
  } else if constexpr (f::scales == scale_form::half_min) {
    s.scale = ops::load_half(scales);
    s.minimum = ops::load_half(scales + 2 * L);
  } else if constexpr (f::scales == scale_form::k_min) {
    s.scale = ops::mul(ops::load_half(super), ops::load_unsigned_bytes(scales));
    s.minimum = ops::mul(ops::load_half(super + 2 * L), ops::load_unsigned_bytes(scales + L));
  } else {
    const auto d = ops::load_half(super);
    s.scale = ops::mul(d, ops::load_signed_bytes(scales));
    s.second = ops::mul(d, ops::load_signed_bytes(scales + L));
  }
  return s;
}

template <class ops, weight_type Type>
struct block_kernel {
  using f = form<Type>;
  using dot = typename ops::template dot<f::bits>;
  static constexpr int L = ops::lanes;
  static constexpr int G = ops::group_rows;
  static constexpr int vectors = f::nibbles ? 4 : 8;
  static constexpr int block_bytes = L * (f::lane_bytes + f::scale_bytes);
  static constexpr int super_bytes = L * f::super_bytes;
  static constexpr int offset = f::bits == 8 ? ops::byte_bias : f::offset;
  static constexpr bool halves = f::scales == scale_form::k_signed; // two scales a block
  static constexpr bool minima = f::scales == scale_form::half_min || f::scales == scale_form::k_min;
  // A group's rows of one block: bytes, scales, scaled sums, sums of halves.
  static constexpr int x_block = G * 48;
  static constexpr int tiles_at_once(int rows) { return ops::block_tiles(rows, halves); }

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
    if constexpr (super_bytes == 0) {
      const int blocks = static_cast<int>(a.columns / block_columns);
      for (int b = 0; b < blocks; ++b, at += block_bytes, x += x_block)
        add_block<T, R>(sum, at, nullptr, distance, x);
    } else {
      const int supers = static_cast<int>(a.columns / (block_columns * super_blocks));
      for (int s = 0; s < supers; ++s) {
        const std::byte* super = at;
        at += super_bytes;
        for (int b = 0; b < super_blocks; ++b, at += block_bytes, x += x_block)
          add_block<T, R>(sum, at, super, distance, x);
      }
    }
    store_outputs<ops, T, R>(sum, a, row, tiles);
  }

private:
  template <int T, int R>
  [[gnu::always_inline]] static inline void add_block(typename ops::f32 (&sum)[T][R], const std::byte* at,
                                                      const std::byte* super, std::size_t distance,
                                                      const std::byte* x) noexcept {
    const float* x_scale = reinterpret_cast<const float*>(x + G * 32);
    const float* x_sum = x_scale + G;
    const std::int32_t* x_half = reinterpret_cast<const std::int32_t*>(x_sum + G);
    if constexpr (R <= ops::prefetch_rows) // with more rows there is time for the processor to see the streams itself
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t)
        for (int i = 0; i < block_bytes; i += 64)
          __builtin_prefetch(at + static_cast<std::size_t>(t) * distance + ops::prefetch_bytes + i);
    dot low[T][R], high[halves ? T : 1][halves ? R : 1];
    if constexpr (f::nibbles) {
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        typename ops::bytes bytes[T];
#pragma GCC unroll 8
        for (int t = 0; t < T; ++t)
          bytes[t] = ops::load_bytes(at + static_cast<std::size_t>(t) * distance + v * L * 4);
        add_vectors<T, R, true>(low, bytes, 2 * v, x + 4 * v);
        add_vectors<T, R, false>(low, bytes, 2 * v + 1, x + 16 + 4 * v);
      }
    } else {
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) {
        typename ops::bytes bytes[T];
#pragma GCC unroll 8
        for (int t = 0; t < T; ++t)
          bytes[t] = ops::load_bytes(at + static_cast<std::size_t>(t) * distance + v * L * 4);
        if constexpr (halves) {
          if (v >= vectors / 2)
            add_vectors<T, R, false>(high, bytes, v - vectors / 2, x + 4 * v);
          else
            add_vectors<T, R, false>(low, bytes, v, x + 4 * v);
        } else {
          add_vectors<T, R, false>(low, bytes, v, x + 4 * v);
        }
      }
    }
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
      const std::size_t tile = static_cast<std::size_t>(t) * distance;
      const auto s = load_scales<ops, Type>(at + tile + L * f::lane_bytes, super ? super + tile : nullptr);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const auto xs = ops::splat(x_scale[r]);
        if constexpr (halves) {
          const auto a = low[t][r].total(offset * x_half[2 * r]);
          const auto b = high[t][r].total(offset * x_half[2 * r + 1]);
          sum[t][r] = ops::fma(ops::to_float(a), ops::mul(s.scale, xs), sum[t][r]);
          sum[t][r] = ops::fma(ops::to_float(b), ops::mul(s.second, xs), sum[t][r]);
        } else {
          const auto whole = offset ? low[t][r].total(offset * (x_half[2 * r] + x_half[2 * r + 1])) : low[t][r].total();
          sum[t][r] = ops::fma(ops::to_float(whole), ops::mul(s.scale, xs), sum[t][r]);
          if constexpr (f::scales == scale_form::half_min)
            sum[t][r] = ops::fma(s.minimum, ops::splat(x_sum[r]), sum[t][r]);
          else if constexpr (f::scales == scale_form::k_min)
            sum[t][r] = ops::fma_negated(s.minimum, ops::splat(x_sum[r]), sum[t][r]);
        }
      }
    }
  }

  // One vector of weights of each tile (bytes, or one half of nibble pairs) times four columns of each row.
  template <int T, int R, bool LowNibbles>
  [[gnu::always_inline]] static inline void add_vectors(dot (&sums)[T][R], const typename ops::bytes (&bytes)[T], int index,
                                                        const std::byte* x) noexcept {
    typename dot::weights weights[T];
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t)
      weights[t] = dot::prepare(!f::nibbles ? bytes[t] : LowNibbles ? ops::low_nibbles(bytes[t]) : ops::high_nibbles(bytes[t]));
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const auto four = ops::splat_bytes(x + r * 32);
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t)
        sums[t][r].add(index, weights[t], four);
    }
  }
};

} // namespace
} // namespace troupe::cpu
