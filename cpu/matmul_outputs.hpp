// What the kernels of block types and of plain types share: which tiles they take and where their sums go.
//
// Loops over tiles and rows are unrolled by pragma throughout: only then does GCC keep the sums in registers.
#pragma once
#include "cpu/matmul_table.hpp"

namespace troupe::cpu {
namespace {

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
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) {
    const std::int64_t first = (tiles.first + t * tiles.distance) * L;
    const std::int64_t valid = a.rows - first;
#pragma GCC unroll 8
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

} // namespace
} // namespace troupe::cpu
