// A weight matrix in the layout that this machine's kernels stream, and the product with it.
//
// y[r] = sum_c W[r][c] x[c] for every input row. Packing is done once at load; a packed matrix is immutable and may be read
// by any number of threads.
//
// Determinism: the value of one output depends on its input row alone, not on the number of rows, threads or the slice of
// output rows asked for: every kernel of one isa sums in the same order.
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
  std::vector<std::byte> storage;
};

class packed_matrix {
public:
  static packed_matrix pack(const tensor_view& weights, isa target);
  packed_matrix(packed_matrix&&) noexcept;
  packed_matrix& operator=(packed_matrix&&) noexcept;
  ~packed_matrix();

  std::int64_t rows() const noexcept;
  std::int64_t columns() const noexcept;
  std::size_t bytes() const noexcept;
  // Output rows are computed in tiles of this many; slices given to multiply start and end on tiles (the last may be short).
  int tile_rows() const noexcept;

  row_kind input_kind() const noexcept;

  struct layout;
  const layout& inside() const noexcept { return *layout_; }

private:
  packed_matrix();
  std::unique_ptr<layout> layout_;
};

// Makes room for `count` rows of `columns` of w's kind. Then prepare_row converts x [columns] into row `index`; different rows
// may be prepared by different threads.
void reserve_rows(prepared_rows& rows, const packed_matrix& w, int count);
void prepare_row(prepared_rows& rows, int index, const float* x, isa target) noexcept;

// y[i * y_stride + r] = (W x_i)[r] for i in [0, x.count) and r in [row_begin, row_end). row_begin is a multiple of tile_rows();
// row_end too, or rows(). Slices may be computed by different threads.
void multiply(const packed_matrix& w, const prepared_rows& x, float* y, std::ptrdiff_t y_stride, std::int64_t row_begin,
              std::int64_t row_end) noexcept;

} // namespace troupe::cpu
