// What one instruction set offers to packed_matrix: a table of functions, filled by the unit that is compiled for it.
//
// Included by units that are compiled for different instruction sets: plain data only.
#pragma once
#include <cstddef>
#include <cstdint>

#include "cpu/matmul_forms.hpp"

namespace troupe::cpu {

// Prepared rows lie in groups of kernel_table::group_rows, interleaved, so that a kernel reads one stream. G = group_rows:
//   f32   per column: G floats; columns padded to an even count with zeros
//   bf16  per two columns: G x {high pair, low pair} of bf16; x = high + low to 2^-17
//   q8    per 32 columns: G x 32 signed bytes, G scales (f32), G x scale * sum of bytes (f32), G x 2 sums of 16 bytes (i32)
struct matmul_arguments {
  const std::byte* tiles;
  std::size_t tile_bytes;
  std::int64_t rows; // of the matrix; the last tile may be short
  std::int64_t columns;
  const std::byte* x;
  std::size_t group_bytes;
  int count; // input rows
  float* y;
  std::ptrdiff_t y_stride;
  std::int64_t tile_begin, tile_end;
};

struct kernel_table {
  int lanes;
  int group_rows;
  bool biased_bytes;                                                // 8-bit weights are stored as weight + 128
  bool bf16_rows;                                                   // bf16 matrices take bf16 rows (else f32)
  void (*multiply[weight_types])(const matmul_arguments&) noexcept; // by weight_type
  void (*prepare_f32)(const float* x, std::int64_t columns, std::byte* group, int slot) noexcept;
  void (*prepare_bf16)(const float* x, std::int64_t columns, std::byte* group, int slot) noexcept;
  void (*prepare_q8)(const float* x, std::int64_t columns, std::byte* group, int slot) noexcept;
};

const kernel_table& plain_kernels() noexcept;
const kernel_table& avx2_kernels() noexcept;   // precondition for use: machine_has(isa::avx2)
const kernel_table& avx512_kernels() noexcept; // precondition for use: machine_has(isa::avx512)

} // namespace troupe::cpu
