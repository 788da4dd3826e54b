#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/random.hpp"
#include "model/weight_types.hpp"
#include "model/weight_types_half.hpp"
#include "tests/golden/weight_types_golden.hpp"

using namespace troupe;

namespace {

std::vector<std::byte> as_bytes(const std::vector<std::uint8_t>& values) {
  std::vector<std::byte> out;
  for (const auto value : values)
    out.push_back(static_cast<std::byte>(value));
  return out;
}

std::vector<float> as_floats(const std::vector<std::uint32_t>& bits) {
  std::vector<float> out;
  for (const auto b : bits)
    out.push_back(std::bit_cast<float>(b));
  return out;
}

// Nearly normal: the sum of twelve uniform draws.
std::vector<float> bell_curve(std::size_t count, std::uint64_t key) {
  std::vector<float> out(count);
  for (std::size_t i = 0; i < count; ++i) {
    double sum = -6.0;
    for (std::uint64_t k = 0; k < 12; ++k)
      sum += uniform_at(key, 12 * i + k);
    out[i] = static_cast<float>(0.05 * sum);
  }
  return out;
}

std::vector<float> there_and_back(weight_type type, const std::vector<float>& weights) {
  const auto& info = info_of(type);
  const auto count = static_cast<std::int64_t>(weights.size());
  std::vector<std::byte> blocks(static_cast<std::size_t>(count / info.block_weights * info.block_bytes));
  quantize_row(type, weights.data(), blocks.data(), count);
  std::vector<float> out(weights.size());
  dequantize_row(type, blocks.data(), out.data(), count);
  return out;
}

// Root mean square of the difference over that of the weights.
double relative_error(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    norm += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(difference / norm);
}

weight_type type_at(int i) {
  return static_cast<weight_type>(i);
}

} // namespace

TEST_CASE("blocks of every type expand to the floats that the gguf package gives") {
  CHECK(golden::expanded.size() == weight_type_count - 1); // all but F32
  for (const auto& golden : golden::expanded) {
    CAPTURE(golden.type);
    const auto type = weight_type_named(golden.type);
    REQUIRE(type);
    const auto blocks = as_bytes(golden.blocks);
    const auto expected = as_floats(golden.floats);
    std::vector<float> found(expected.size());
    dequantize_row(*type, blocks.data(), found.data(), static_cast<std::int64_t>(found.size()));
    for (std::size_t i = 0; i < found.size(); ++i) {
      CAPTURE(i);
      // One rounding of slack, for compilers that fuse the multiply and the add.
      CHECK(std::fabs(found[i] - expected[i]) <= 1.2e-7f * std::fabs(expected[i]) + 1e-9f);
    }
  }
}

TEST_CASE("rows pack to the bytes that the gguf package gives") {
  for (const auto& golden : golden::packed) {
    CAPTURE(golden.type);
    const auto type = weight_type_named(golden.type);
    REQUIRE(type);
    const auto weights = as_floats(golden.floats);
    std::vector<std::byte> found(golden.blocks.size());
    quantize_row(*type, weights.data(), found.data(), static_cast<std::int64_t>(weights.size()));
    CHECK(found == as_bytes(golden.blocks));
  }
}

TEST_CASE("packing loses no more than a type's bits must cost") {
  const auto weights = bell_curve(256 * 16, 7);
  const std::pair<weight_type, double> bounds[] = {
      {weight_type::f32, 0.0},   {weight_type::f16, 3e-4},  {weight_type::bf16, 3e-3}, {weight_type::q8_0, 0.006},
      {weight_type::q6_k, 0.02}, {weight_type::q5_k, 0.04}, {weight_type::q5_1, 0.05}, {weight_type::q5_0, 0.05},
      {weight_type::q4_k, 0.08}, {weight_type::q4_1, 0.09}, {weight_type::q4_0, 0.10}};
  CHECK(std::size(bounds) == weight_type_count);
  for (const auto& [type, bound] : bounds) {
    CAPTURE(info_of(type).name);
    CHECK(relative_error(there_and_back(type, weights), weights) <= bound);
  }
}

TEST_CASE("a type with a floor packs weights far from zero as well as those around it") {
  auto weights = bell_curve(256 * 4, 8);
  for (auto& weight : weights)
    weight -= 1.0f; // all negative
  for (const auto type : {weight_type::q4_k, weight_type::q5_k, weight_type::q4_1}) {
    CAPTURE(info_of(type).name);
    CHECK(relative_error(there_and_back(type, weights), weights) < 0.02);
  }
}

TEST_CASE("zeros stay zeros in every type") {
  const std::vector<float> zeros(512, 0.0f);
  for (int i = 0; i < weight_type_count; ++i) {
    CAPTURE(info_of(type_at(i)).name);
    CHECK(there_and_back(type_at(i), zeros) == zeros);
  }
}

TEST_CASE("weights that are not finite still give whole blocks") {
  for (const float odd : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::max()}) {
    auto weights = bell_curve(256, 9);
    weights[3] = odd;
    for (int i = 0; i < weight_type_count; ++i)
      CHECK(there_and_back(type_at(i), weights).size() == 256);
  }
}

TEST_CASE("every half converts to a float and back unchanged") {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = half_to_float(half);
    if (std::isnan(value))
      CHECK((half & 0x7fffu) > 0x7c00u);
    else if (float_to_half(value) != half)
      FAIL_CHECK("half " << bits << " comes back as " << float_to_half(value));
  }
  CHECK(half_to_float(0x3c00) == 1.0f);
  CHECK(half_to_float(0x7bff) == 65504.0f);
  CHECK(half_to_float(0x0001) == 0x1p-24f);
  CHECK(half_to_float(0xc248) == -3.140625f);
}

TEST_CASE("floats round to the nearest half and bfloat, ties to even") {
  CHECK(float_to_half(65519.996f) == 0x7bff);
  CHECK(float_to_half(65520.0f) == 0x7c00);
  CHECK(float_to_half(1.0f + 0x1p-11f) == 0x3c00);
  CHECK(float_to_half(1.0f + 0x3p-11f) == 0x3c02);
  CHECK(float_to_half(0x1p-25f) == 0x0000);
  CHECK(float_to_half(0x1.8p-24f) == 0x0002);
  CHECK(std::isnan(half_to_float(float_to_half(std::numeric_limits<float>::quiet_NaN()))));
  CHECK(float_to_bfloat(1.0f + 0x1p-8f) == 0x3f80);
  CHECK(float_to_bfloat(1.0f + 0x3p-8f) == 0x3f82);
  CHECK(bfloat_to_float(0xc049) == -3.140625f);
  CHECK(std::isnan(bfloat_to_float(float_to_bfloat(std::bit_cast<float>(0x7f800001u)))));
}

TEST_CASE("types are found by name in any case, and unknown names are not") {
  for (int i = 0; i < weight_type_count; ++i)
    CHECK(weight_type_named(info_of(type_at(i)).name) == type_at(i));
  CHECK(weight_type_named("q4_k") == weight_type::q4_k);
  CHECK_FALSE(weight_type_named("q3_k"));
  CHECK_FALSE(weight_type_named(""));
}
