// The matrix products, written once over a small set of vector operations `ops` (matmul_ops_*.hpp).
//
// A kernel<T, R> computes T tiles x R input rows over all columns. Whatever T and R, one output is one chain of additions in
// column order, so the value does not depend on how the work was cut. Products within a block of 32 are integers and exact.
//
// Everything here has internal linkage: units compiled for different instruction sets must not share code that the linker
// could merge. Hence no standard library in here either.
#pragma once
#include "cpu/matmul_block_kernel.hpp"
#include "cpu/matmul_plain_kernel.hpp"

namespace troupe::cpu {
namespace {

// Input rows are taken in blocks of about this size, which stay in the L2 cache while tiles stream by.
constexpr std::size_t x_block_bytes = 192 << 10;

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
