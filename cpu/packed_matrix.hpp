// A weight matrix in the layout that this machine's kernels stream, and the product with it.
//
// y[r] = sum_c W[r][c] x[c] for every input row. Packing is done once at load; a packed matrix is immutable then and may be
// read by any number of threads. Weights are not rounded: f32, f16 and bf16 rows are multiplied in f32 (on avx512 bf16 takes
// the input as a sum of two bf16, which keeps 17 bits); block types take the input as signed bytes with a scale per 32 columns.
//
// Determinism: the value of one output depends on its input row alone, not on the number of rows, threads or the slice of
// output rows asked for: every kernel of one isa sums in the same order. A row with an infinity or a NaN gives non-finite
// outputs of its own and changes no other row.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cpu/isa.hpp"
#include "model/weights.hpp"

namespace troupe::cpu {

// How a packed matrix wants its input rows. Matrices of one kind and one column count may share prepared rows.
enum class row_kind { f32, bf16, q8 };

// Input rows, converted or quantised once for all matrices that read them. Reused from step to step; grows, never shrinks.
struct prepared_rows {
  row_kind kind = row_kind::f32;
  int count = 0;
  std::int64_t columns = 0;
  int group_rows = 1; // rows lie interleaved in groups of this many
  std::size_t group_bytes = 0;
  std::size_t offset = 0; // of the first group in storage: on a cache line
  std::vector<std::byte> storage;
};

class packed_matrix {
public:
  // Precondition: machine_has(target); columns are a multiple of the type's block. Throws std::bad_alloc.
  static packed_matrix pack(const tensor_view& weights, isa target);

  // The same in parts, for packing by several threads: room first, then every tile in [0, tiles()) once.
  static packed_matrix make_room(const tensor_view& weights, isa target);
  void pack_tiles(const tensor_view& weights, std::int64_t tile_begin, std::int64_t tile_end) noexcept;

  packed_matrix(packed_matrix&&) noexcept;
  packed_matrix& operator=(packed_matrix&&) noexcept;
  ~packed_matrix();

  std::int64_t rows() const noexcept;
  std::int64_t columns() const noexcept;
  std::size_t bytes() const noexcept;
  // Output rows are computed in tiles of this many; slices given to multiply start and end on tiles (the last may be short).
  int tile_rows() const noexcept;
  std::int64_t tiles() const noexcept;

  row_kind input_kind() const noexcept;

  struct layout;
  const layout& inside() const noexcept { return *layout_; }

private:
  packed_matrix();
  std::unique_ptr<layout> layout_;
};

// Makes room for `count` rows of `columns` of w's kind. Then prepare_row converts x [columns] into row `index`; different rows
// may be prepared by different threads. `target` is the isa that w was packed for.
void reserve_rows(prepared_rows& rows, const packed_matrix& w, int count);
void prepare_row(prepared_rows& rows, int index, const float* x, isa target) noexcept;

// y[i * y_stride + r] = (W x_i)[r] for i in [0, x.count) and r in [row_begin, row_end). row_begin is a multiple of tile_rows();
// row_end too, or rows(). Slices may be computed by different threads.
void multiply(const packed_matrix& w, const prepared_rows& x, float* y, std::ptrdiff_t y_stride, std::int64_t row_begin,
              std::int64_t row_end) noexcept;

// Multiplies small random matrices of every type and compares with the plain kernels; a few milliseconds. false: this machine
// (or its emulation of the instructions) computes something else, and the isa must not be used. Precondition:
// machine_has(target).
bool self_test(isa target);

} // namespace troupe::cpu
