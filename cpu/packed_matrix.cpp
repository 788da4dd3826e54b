#include "cpu/packed_matrix.hpp"

#include "base/check.hpp"
#include "cpu/huge_memory.hpp"
#include "cpu/matmul_table.hpp"
#include "cpu/pack_tile.hpp"

namespace troupe::cpu {
namespace {

constexpr std::size_t cache_line = 64;

const kernel_table& kernels_of(isa target) noexcept {
  switch (target) {
  case isa::plain: return plain_kernels();
  case isa::avx2: return avx2_kernels();
  case isa::avx512: return avx512_kernels();
  }
  return plain_kernels();
}

row_kind input_kind_of(weight_type type, const kernel_table& kernels) noexcept {
  switch (type) {
  case weight_type::f32:
  case weight_type::f16: return row_kind::f32;
  case weight_type::bf16: return kernels.bf16_rows ? row_kind::bf16 : row_kind::f32;
  default: return row_kind::q8;
  }
}

// Bytes of one group of rows; see matmul_table.hpp.
std::size_t group_bytes_of(row_kind kind, std::int64_t columns, int group_rows) noexcept {
  const auto c = static_cast<std::size_t>(columns);
  const auto g = static_cast<std::size_t>(group_rows);
  std::size_t bytes = 0;
  switch (kind) {
  case row_kind::f32: bytes = (c + 1) / 2 * 2 * g * 4; break;
  case row_kind::bf16: bytes = (c + 1) / 2 * g * 8; break;
  case row_kind::q8: bytes = c / block_columns * g * 48; break;
  }
  return (bytes + cache_line - 1) / cache_line * cache_line;
}

} // namespace

struct packed_matrix::layout {
  weight_type type;
  const kernel_table* kernels;
  std::int64_t rows, columns, tiles;
  std::size_t tile_bytes;
  huge_memory memory;

  tile_shape shape() const noexcept { return {kernels->lanes, kernels->biased_bytes}; }
};

packed_matrix::packed_matrix() = default;
packed_matrix::packed_matrix(packed_matrix&&) noexcept = default;
packed_matrix& packed_matrix::operator=(packed_matrix&&) noexcept = default;
packed_matrix::~packed_matrix() = default;

packed_matrix packed_matrix::make_room(const tensor_view& weights, isa target) {
  TROUPE_CHECK(weights.rows > 0 && weights.columns > 0);
  TROUPE_CHECK(weights.columns % info_of(weights.type).block_weights == 0);
  const kernel_table& kernels = kernels_of(target);
  packed_matrix out;
  out.layout_ = std::make_unique<layout>();
  layout& l = *out.layout_;
  l.type = weights.type;
  l.kernels = &kernels;
  l.rows = weights.rows;
  l.columns = weights.columns;
  l.tiles = (weights.rows + kernels.lanes - 1) / kernels.lanes;
  l.tile_bytes = packed_tile_bytes(weights.type, weights.columns, l.shape());
  l.memory = huge_memory(l.tile_bytes * static_cast<std::size_t>(l.tiles));
  return out;
}

void packed_matrix::pack_tiles(const tensor_view& weights, std::int64_t tile_begin, std::int64_t tile_end) noexcept {
  for (std::int64_t tile = tile_begin; tile < tile_end; ++tile)
    pack_tile(weights, tile * layout_->kernels->lanes, layout_->shape(),
              layout_->memory.data() + static_cast<std::size_t>(tile) * layout_->tile_bytes);
}

packed_matrix packed_matrix::pack(const tensor_view& weights, isa target) {
  packed_matrix out = make_room(weights, target);
  out.pack_tiles(weights, 0, out.tiles());
  return out;
}

std::int64_t packed_matrix::rows() const noexcept {
  return layout_->rows;
}
std::int64_t packed_matrix::columns() const noexcept {
  return layout_->columns;
}
std::size_t packed_matrix::bytes() const noexcept {
  return layout_->tile_bytes * static_cast<std::size_t>(layout_->tiles);
}
int packed_matrix::tile_rows() const noexcept {
  return layout_->kernels->lanes;
}
std::int64_t packed_matrix::tiles() const noexcept {
  return layout_->tiles;
}
row_kind packed_matrix::input_kind() const noexcept {
  return input_kind_of(layout_->type, *layout_->kernels);
}

void reserve_rows(prepared_rows& rows, const packed_matrix& w, int count) {
  TROUPE_CHECK(count >= 0);
  const kernel_table& kernels = *w.inside().kernels;
  rows.kind = w.input_kind();
  rows.count = count;
  rows.columns = w.columns();
  rows.group_rows = kernels.group_rows;
  rows.group_bytes = group_bytes_of(rows.kind, rows.columns, rows.group_rows);
  const auto groups = static_cast<std::size_t>((count + rows.group_rows - 1) / rows.group_rows);
  const std::size_t needed = groups * rows.group_bytes + cache_line;
  if (rows.storage.size() < needed)
    rows.storage.resize(needed);
  const auto address = reinterpret_cast<std::uintptr_t>(rows.storage.data());
  rows.offset = (cache_line - address % cache_line) % cache_line;
}

void prepare_row(prepared_rows& rows, int index, const float* x, isa target) noexcept {
  const kernel_table& kernels = kernels_of(target);
  std::byte* group = rows.storage.data() + rows.offset + static_cast<std::size_t>(index / rows.group_rows) * rows.group_bytes;
  const int slot = index % rows.group_rows;
  switch (rows.kind) {
  case row_kind::f32: return kernels.prepare_f32(x, rows.columns, group, slot);
  case row_kind::bf16: return kernels.prepare_bf16(x, rows.columns, group, slot);
  case row_kind::q8: return kernels.prepare_q8(x, rows.columns, group, slot);
  }
}

void multiply(const packed_matrix& w, const prepared_rows& x, float* y, std::ptrdiff_t y_stride, std::int64_t row_begin,
              std::int64_t row_end) noexcept {
  const packed_matrix::layout& l = w.inside();
  const int lanes = l.kernels->lanes;
  l.kernels->multiply[static_cast<int>(l.type)]({.tiles = l.memory.data(),
                                                 .tile_bytes = l.tile_bytes,
                                                 .rows = l.rows,
                                                 .columns = l.columns,
                                                 .x = x.storage.data() + x.offset,
                                                 .group_bytes = x.group_bytes,
                                                 .count = x.count,
                                                 .y = y,
                                                 .y_stride = y_stride,
                                                 .tile_begin = row_begin / lanes,
                                                 .tile_end = (row_end + lanes - 1) / lanes});
}

} // namespace troupe::cpu
