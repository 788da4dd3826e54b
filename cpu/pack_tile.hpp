// Rearranges rows of a file's weights into one packed tile (layouts in matmul_forms.hpp).
#pragma once
#include <cstddef>
#include <cstdint>

#include "model/weights.hpp"

namespace troupe::cpu {

struct tile_shape {
  int lanes;
  bool biased_bytes; // 8-bit weights as weight + 128, for unsigned x signed products
};

std::size_t packed_tile_bytes(weight_type type, std::int64_t columns, tile_shape shape) noexcept;

// Rows [first_row, first_row + lanes) of the view; rows past its end become zeros. `tile` has packed_tile_bytes and is zeroed.
void pack_tile(const tensor_view& weights, std::int64_t first_row, tile_shape shape, std::byte* tile) noexcept;

} // namespace troupe::cpu
