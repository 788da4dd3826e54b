// Random weight matrices of any storage type: any bits for the weights, scales of a sane size.
#pragma once
#include <cstdint>
#include <vector>

#include "model/weights.hpp"

namespace troupe::tests {

class random_weights {
public:
  random_weights(weight_type type, std::int64_t rows, std::int64_t columns, std::uint64_t seed);
  const tensor_view& view() const noexcept { return view_; }
  // Every weight of a block type at the top or the bottom of its range, with the scales as they are.
  void set_all_levels(bool top);
  // The file's weights as floats, row by row, by dequantize_row.
  std::vector<float> floats() const;

private:
  std::vector<std::byte> bytes_;
  tensor_view view_;
};

} // namespace troupe::tests
