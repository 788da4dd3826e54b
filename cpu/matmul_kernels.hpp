// The matrix products, written once over a small set of vector operations `ops` (matmul_ops_*.hpp).
//
// A kernel<T, R> computes T tiles x R input rows over all columns. Whatever T and R, one output is one chain of additions in
// column order, so the value does not depend on how the work was cut. Products within a block of 32 are integers and exact.
//
// Everything here has internal linkage: units compiled for different instruction sets must not share code that the linker
// could merge. Hence no standard library in here either.
#pragma once
#include "cpu/matmul_table.hpp"

namespace troupe::cpu {
namespace {

// Input rows are taken in blocks of about this size, which stay in the L2 cache while tiles stream by.
constexpr std::size_t x_block_bytes = 192 << 10;

// T tiles that a kernel reads side by side: T streams, far apart, so that each runs on through memory from call to call and
// the processor's prefetching keeps up with it.
struct tile_set {
  std::int64_t first;
  std::int64_t distance; // in tiles
};

template <class ops, int T, int R>
[[gnu::always_inline]] inline void store_outputs(const typename ops::f32 (&sum)[T][R], const matmul_arguments& a, int row,
                                                 tile_set tiles) noexcept {
  constexpr int L = ops::lanes;
  for (int t = 0; t < T; ++t) {
    const std::int64_t first = (tiles.first + t * tiles.distance) * L;
    const std::int64_t valid = a.rows - first;
    for (int r = 0; r < R; ++r) {
      float* y = a.y + (row + r) * a.y_stride + first;
      if (valid >= L) {
        ops::store(y, sum[t][r]);
      } else {
        float whole[L];
        ops::store(whole, sum[t][r]);
        for (std::int64_t i = 0; i < valid; ++i)
          y[i] = whole[i];
      }
    }
  }
}

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
  static constexpr int tiles_at_once(int rows) { return ops::block_tiles(rows); }

  template <int T, int R>
  static void run(const matmul_arguments& a, const std::byte* x, int row, tile_set tiles) noexcept {
    typename ops::f32 sum[T][R];
    for (int t = 0; t < T; ++t)
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
  [[gnu::always_inline]] static inline void add_block(typename ops::f32 (&sum)[T][R], const std::byte* at, const std::byte* super,
                                                      std::size_t distance, const std::byte* x) noexcept {
    const float* x_scale = reinterpret_cast<const float*>(x + G * 32);
    const float* x_sum = x_scale + G;
    const std::int32_t* x_half = reinterpret_cast<const std::int32_t*>(x_sum + G);
    dot low[T][R], high[halves ? T : 1][halves ? R : 1];
    if constexpr (f::nibbles) {
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        typename ops::bytes bytes[T];
        for (int t = 0; t < T; ++t)
          bytes[t] = ops::load_bytes(at + static_cast<std::size_t>(t) * distance + v * L * 4);
        add_vectors<T, R, true>(low, bytes, 2 * v, x + 4 * v);
        add_vectors<T, R, false>(low, bytes, 2 * v + 1, x + 16 + 4 * v);
      }
    } else {
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) {
        typename ops::bytes bytes[T];
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
    for (int t = 0; t < T; ++t) {
      const std::size_t tile = static_cast<std::size_t>(t) * distance;
      const auto s = load_scales<ops, Type>(at + tile + L * f::lane_bytes, super ? super + tile : nullptr);
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
    for (int t = 0; t < T; ++t)
      weights[t] = dot::prepare(!f::nibbles ? bytes[t] : LowNibbles ? ops::low_nibbles(bytes[t]) : ops::high_nibbles(bytes[t]));
    for (int r = 0; r < R; ++r) {
      const auto four = ops::splat_bytes(x + r * 32);
      for (int t = 0; t < T; ++t)
        sums[t][r].add(index, weights[t], four);
    }
  }
};

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
    for (int t = 0; t < T; ++t)
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
  [[gnu::always_inline]] static inline void add_column(typename ops::f32 (&sum)[T][R], const std::byte* at, std::size_t distance,
                                                       const std::byte* x) noexcept {
    const float* values = reinterpret_cast<const float*>(x);
    typename ops::f32 weights[T];
    for (int t = 0; t < T; ++t) {
      const std::byte* q = at + static_cast<std::size_t>(t) * distance;
      weights[t] = Type == weight_type::f32 ? ops::load(reinterpret_cast<const float*>(q)) : ops::load_half(q);
    }
    for (int r = 0; r < R; ++r) {
      const auto value = ops::splat(values[r]);
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
      for (int t = 0; t < T; ++t)
        weights[t] = ops::load_bytes(at + static_cast<std::size_t>(t) * distance);
      for (int r = 0; r < R; ++r)
        for (int t = 0; t < T; ++t) {
          sum[t][r] = ops::dot_bf16(sum[t][r], weights[t], values[2 * r]);
          sum[t][r] = ops::dot_bf16(sum[t][r], weights[t], values[2 * r + 1]);
        }
    } else {
      const float* values = reinterpret_cast<const float*>(x);
      typename ops::f32 weights[T];
      for (int half = 0; half < 2; ++half) {
        for (int t = 0; t < T; ++t) {
          const auto pair = ops::load_bytes(at + static_cast<std::size_t>(t) * distance);
          weights[t] = half == 0 ? ops::first_of_pair(pair) : ops::second_of_pair(pair);
        }
        for (int r = 0; r < R; ++r) {
          const auto value = ops::splat(values[half * G + r]);
          for (int t = 0; t < T; ++t)
            sum[t][r] = ops::fma(weights[t], value, sum[t][r]);
        }
      }
    }
  }
};

// One group of R input rows against `most` tiles, a few at a time.
template <class kernel, int R>
void run_tiles(const matmul_arguments& a, const std::byte* x, int row, tile_set tiles) noexcept {
  constexpr int most = kernel::tiles_at_once(1), step = kernel::tiles_at_once(R);
  static_assert(most % step == 0);
  for (int t = 0; t < most; t += step)
    kernel::template run<step, R>(a, x, row, {tiles.first + t * tiles.distance, tiles.distance});
}

template <class kernel, bool Single, int R>
[[gnu::always_inline]] inline void run_some_rows(const matmul_arguments& a, const std::byte* x, int row, int rows,
                                                 tile_set tiles) noexcept {
  if constexpr (R > 0) {
    if (rows != R)
      run_some_rows<kernel, Single, R - 1>(a, x, row, rows, tiles);
    else if constexpr (Single)
      kernel::template run<1, R>(a, x, row, tiles);
    else
      run_tiles<kernel, R>(a, x, row, tiles);
  }
}

// All input rows against all tiles of the slice: blocks of input rows outermost, a few tiles at a time within, so that a tile
// comes from memory once a block and from the L1 cache for all groups of rows but the first.
template <class kernel>
void multiply_slice(const matmul_arguments& a) noexcept {
  constexpr int G = kernel::G;
  constexpr int most = kernel::tiles_at_once(1);
  const int groups = (a.count + G - 1) / G;
  const int fitting = static_cast<int>(x_block_bytes / a.group_bytes);
  const int block = fitting > 1 ? fitting : 1;
  const std::int64_t distance = (a.tile_end - a.tile_begin) / most;
  const auto rows_of = [&](int g) { return a.count - g * G < G ? a.count - g * G : G; };
  const auto x_of = [&](int g) { return a.x + static_cast<std::size_t>(g) * a.group_bytes; };
  for (int first = 0; first < groups; first += block) {
    const int last = first + block < groups ? first + block : groups;
    for (std::int64_t tile = a.tile_begin; tile < a.tile_begin + distance; ++tile)
      for (int g = first; g < last; ++g)
        run_some_rows<kernel, false, G>(a, x_of(g), g * G, rows_of(g), {tile, distance});
    for (std::int64_t tile = a.tile_begin + most * distance; tile < a.tile_end; ++tile)
      for (int g = first; g < last; ++g)
        run_some_rows<kernel, true, G>(a, x_of(g), g * G, rows_of(g), {tile, 0});
  }
}

template <class ops, weight_type Type>
void multiply_type(const matmul_arguments& a) noexcept {
  if constexpr (form<Type>::quantised)
    multiply_slice<block_kernel<ops, Type>>(a);
  else
    multiply_slice<plain_kernel<ops, Type>>(a);
}

template <class ops>
constexpr kernel_table make_table() {
  kernel_table table{};
  table.lanes = ops::lanes;
  table.group_rows = ops::group_rows;
  table.biased_bytes = ops::byte_bias != 0;
  table.bf16_rows = ops::bf16_rows;
  table.multiply[int(weight_type::f32)] = multiply_type<ops, weight_type::f32>;
  table.multiply[int(weight_type::f16)] = multiply_type<ops, weight_type::f16>;
  table.multiply[int(weight_type::bf16)] = multiply_type<ops, weight_type::bf16>;
  table.multiply[int(weight_type::q8_0)] = multiply_type<ops, weight_type::q8_0>;
  table.multiply[int(weight_type::q4_0)] = multiply_type<ops, weight_type::q4_0>;
  table.multiply[int(weight_type::q4_1)] = multiply_type<ops, weight_type::q4_1>;
  table.multiply[int(weight_type::q5_0)] = multiply_type<ops, weight_type::q5_0>;
  table.multiply[int(weight_type::q5_1)] = multiply_type<ops, weight_type::q5_1>;
  table.multiply[int(weight_type::q4_k)] = multiply_type<ops, weight_type::q4_k>;
  table.multiply[int(weight_type::q5_k)] = multiply_type<ops, weight_type::q5_k>;
  table.multiply[int(weight_type::q6_k)] = multiply_type<ops, weight_type::q6_k>;
  return table;
}

} // namespace
} // namespace troupe::cpu
