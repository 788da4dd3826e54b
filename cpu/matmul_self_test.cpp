#include <cmath>
#include <vector>

#include "base/random.hpp"
#include "cpu/packed_matrix.hpp"
#include "model/weight_types.hpp"

namespace troupe::cpu {
namespace {

// Odd on purpose: a short last tile, more rows than one group, several K-type blocks.
constexpr std::int64_t outputs = 21, columns = 512;
constexpr int inputs = 7;

struct case_data {
  std::vector<float> weights, x;
};

case_data random_case() {
  case_data out;
  for (std::int64_t i = 0; i < outputs * columns; ++i)
    out.weights.push_back(static_cast<float>(uniform_at(1, static_cast<std::uint64_t>(i)) - 0.5));
  for (std::int64_t i = 0; i < inputs * columns; ++i)
    out.x.push_back(static_cast<float>(uniform_at(2, static_cast<std::uint64_t>(i)) - 0.5));
  return out;
}

std::vector<float> product(const tensor_view& weights, const std::vector<float>& x, isa target) {
  const packed_matrix w = packed_matrix::pack(weights, target);
  prepared_rows rows;
  reserve_rows(rows, w, inputs);
  for (int i = 0; i < inputs; ++i)
    prepare_row(rows, i, x.data() + i * columns, target);
  std::vector<float> y(static_cast<std::size_t>(inputs * outputs));
  multiply(w, rows, y.data(), outputs, 0, outputs);
  return y;
}

} // namespace

bool self_test(isa target) {
  const case_data data = random_case();
  for (int t = 0; t < weight_type_count; ++t) {
    const auto type = static_cast<weight_type>(t);
    tensor_view view{.type = type, .rows = outputs, .columns = columns, .data = nullptr};
    std::vector<std::byte> blocks(view.bytes());
    view.data = blocks.data();
    for (std::int64_t r = 0; r < outputs; ++r)
      quantize_row(type, data.weights.data() + r * columns, blocks.data() + static_cast<std::size_t>(r) * view.row_bytes(),
                   columns);
    const std::vector<float> expected = product(view, data.x, isa::plain), got = product(view, data.x, target);
    // The products are sums of 512 terms of at most 0.25; orders of summation and 17 bits of input differ far less.
    for (std::size_t i = 0; i < got.size(); ++i)
      if (!(std::fabs(got[i] - expected[i]) <= 1e-3f))
        return false;
  }
  return true;
}

} // namespace troupe::cpu
