#include "cpu/pack_tile.hpp"

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "tests/support/random_weights.hpp"

using namespace troupe;
using namespace troupe::cpu;
using troupe::tests::random_weights;

namespace {

// Reads weight (lane, column) back out of a packed tile, by the layout that matmul_forms.hpp describes.
class tile_reader {
public:
  tile_reader(weight_type type, tile_shape shape, const std::byte* tile)
      : type_(type), shape_(shape), L_(shape.lanes), tile_(tile) {}

  float at(int lane, int column) const {
    switch (type_) {
    case weight_type::f32: {
      float value;
      std::memcpy(&value, tile_ + (column * L_ + lane) * 4, 4);
      return value;
    }
    case weight_type::f16: return half((column * L_ + lane) * 2);
    case weight_type::bf16: {
      const int at = (column / 2 * L_ + lane) * 4 + column % 2 * 2;
      const std::uint32_t bits = static_cast<std::uint32_t>(u8(at) | u8(at + 1) << 8) << 16;
      float value;
      std::memcpy(&value, &bits, 4);
      return value;
    }
    case weight_type::q8_0:
      return signed_byte(block(32, 2, 0, column), lane, column) * half(block(32, 2, 0, column) + 32 * L_ + 2 * lane);
    case weight_type::q4_0: {
      const int b = block(16, 2, 0, column);
      return static_cast<float>(nibble(b, lane, column) - 8) * half(b + 16 * L_ + 2 * lane);
    }
    case weight_type::q4_1: {
      const int b = block(16, 4, 0, column);
      return static_cast<float>(nibble(b, lane, column)) * half(b + 16 * L_ + 2 * lane) + half(b + 18 * L_ + 2 * lane);
    }
    case weight_type::q5_0: {
      const int b = block(32, 2, 0, column);
      return static_cast<float>(byte(b, lane, column) - 16) * half(b + 32 * L_ + 2 * lane);
    }
    case weight_type::q5_1: {
      const int b = block(32, 4, 0, column);
      return static_cast<float>(byte(b, lane, column)) * half(b + 32 * L_ + 2 * lane) + half(b + 34 * L_ + 2 * lane);
    }
    case weight_type::q4_k: {
      const int b = block(16, 2, 4, column), s = super(16, 2, 4, column);
      return half(s + 2 * lane) * static_cast<float>(u8(b + 16 * L_ + lane)) * static_cast<float>(nibble(b, lane, column)) -
             half(s + 2 * L_ + 2 * lane) * static_cast<float>(u8(b + 17 * L_ + lane));
    }
    case weight_type::q5_k: {
      const int b = block(32, 2, 4, column), s = super(32, 2, 4, column);
      return half(s + 2 * lane) * static_cast<float>(u8(b + 32 * L_ + lane)) * static_cast<float>(byte(b, lane, column)) -
             half(s + 2 * L_ + 2 * lane) * static_cast<float>(u8(b + 33 * L_ + lane));
    }
    case weight_type::q6_k: {
      const int b = block(32, 2, 2, column), s = super(32, 2, 2, column);
      const int scale = static_cast<std::int8_t>(u8(b + (32 + column % 32 / 16) * L_ + lane));
      return half(s + 2 * lane) * static_cast<float>(scale) * static_cast<float>(byte(b, lane, column) - 32);
    }
    }
    return 0;
  }

private:
  int u8(int at) const { return static_cast<std::uint8_t>(tile_[at]); }
  float half(int at) const {
    const int bits = u8(at) | u8(at + 1) << 8;
    const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    const float value = std::ldexp(static_cast<float>(exponent ? mantissa + 1024 : mantissa), (exponent ? exponent : 1) - 25);
    return bits >> 15 ? -value : value;
  }
  // Where the column's block of 32 and its group of 8 blocks begin.
  int block(int lane_bytes, int scale_bytes, int super_bytes, int column) const {
    const int b = column / 32;
    return L_ * (b * (lane_bytes + scale_bytes) + (b / 8 + 1) * super_bytes);
  }
  int super(int lane_bytes, int scale_bytes, int super_bytes, int column) const {
    return L_ * (column / 256) * (8 * (lane_bytes + scale_bytes) + super_bytes);
  }
  int byte(int b, int lane, int column) const {
    const int c = column % 32;
    return u8(b + c / 4 * L_ * 4 + lane * 4 + c % 4);
  }
  float signed_byte(int b, int lane, int column) const {
    const int value = byte(b, lane, column);
    return static_cast<float>(shape_.biased_bytes ? value - 128 : static_cast<std::int8_t>(value));
  }
  int nibble(int b, int lane, int column) const {
    const int c = column % 16;
    return u8(b + c / 4 * L_ * 4 + lane * 4 + c % 4) >> (column % 32 / 16 * 4) & 15;
  }

  weight_type type_;
  tile_shape shape_;
  int L_;
  const std::byte* tile_;
};

} // namespace

TEST_CASE("a packed tile holds every weight of the file, where the layout says") {
  for (int t = 0; t < 11; ++t)
    for (tile_shape shape : {tile_shape{8, false}, tile_shape{16, true}}) {
      const auto type = static_cast<weight_type>(t);
      const int columns = info_of(type).block_weights == 1 ? 7 : 512;
      CAPTURE(std::string(info_of(type).name));
      CAPTURE(shape.lanes);
      const std::int64_t rows = shape.lanes + 3;
      const random_weights weights(type, rows, columns, 99 + static_cast<std::uint64_t>(t));
      const std::vector<float> floats = weights.floats();
      const std::size_t bytes = packed_tile_bytes(type, columns, shape);
      for (std::int64_t first : {std::int64_t{0}, static_cast<std::int64_t>(shape.lanes)}) {
        std::vector<std::byte> tile(bytes + 64);
        std::fill(tile.begin() + static_cast<std::ptrdiff_t>(bytes), tile.end(), std::byte{0x5a});
        pack_tile(weights.view(), first, shape, tile.data());
        const tile_reader reader(type, shape, tile.data());
        bool equal = true;
        for (int lane = 0; lane < shape.lanes && first + lane < rows; ++lane)
          for (int c = 0; c < columns; ++c) {
            const float expected = floats[static_cast<std::size_t>((first + lane) * columns + c)];
            // Exact but for the order of a product of three or a product and a sum.
            equal = equal && std::fabs(reader.at(lane, c) - expected) <= 1e-6f * (1 + std::fabs(expected));
          }
        CHECK(equal);
        for (std::size_t i = bytes; i < tile.size(); ++i)
          CHECK(tile[i] == std::byte{0x5a});
      }
    }
}
