#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include <doctest/doctest.h>

#include "base/random.hpp"
#include "cpu/packed_matrix.hpp"
#include "tests/support/random_weights.hpp"

using namespace troupe;
using namespace troupe::cpu;
using troupe::tests::random_weights;

namespace {

constexpr float poison = -77777.0f;

constexpr weight_type all_types[] = {weight_type::f32,  weight_type::f16,  weight_type::bf16, weight_type::q8_0,
                                     weight_type::q4_0, weight_type::q4_1, weight_type::q5_0, weight_type::q5_1,
                                     weight_type::q4_k, weight_type::q5_k, weight_type::q6_k};

std::vector<isa> isas() {
  std::vector<isa> out;
  for (isa i : {isa::plain, isa::avx2, isa::avx512})
    if (machine_has(i))
      out.push_back(i);
  return out;
}

bool plain(weight_type type) {
  return info_of(type).block_weights == 1;
}

std::vector<std::int64_t> column_counts(weight_type type) {
  if (plain(type))
    return {1, 2, 3, 31, 576};
  return info_of(type).block_weights == 256 ? std::vector<std::int64_t>{256, 1536} : std::vector<std::int64_t>{32, 64, 96, 576};
}

std::uint64_t test_seed() {
  static const std::uint64_t seed = std::random_device{}();
  return seed;
}

// Inputs that are integers / 64 with a 127 in each block of 32: quantising them to bytes loses nothing.
std::vector<float> exact_inputs(int count, std::int64_t columns, std::uint64_t seed) {
  std::vector<float> x(static_cast<std::size_t>(count * columns));
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(static_cast<int>(random_at(seed, i) % 255) - 127) / 64.0f;
  for (std::size_t i = 0; i < x.size(); i += 32)
    x[std::min(i + random_at(seed + 1, i) % 32, x.size() - 1)] = random_at(seed + 2, i) % 2 ? 127.0f / 64 : -127.0f / 64;
  return x;
}

std::vector<float> any_inputs(int count, std::int64_t columns, std::uint64_t seed) {
  std::vector<float> x(static_cast<std::size_t>(count * columns));
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(uniform_at(seed, i) + uniform_at(seed + 1, i) - 1.0);
  return x;
}

struct slice {
  std::int64_t begin, end;
};

// All products, computed slice by slice into poisoned memory.
std::vector<float> product(const packed_matrix& w, const float* x, int count, isa target, const std::vector<slice>& slices) {
  prepared_rows rows;
  reserve_rows(rows, w, count);
  for (int i = count - 1; i >= 0; --i)
    prepare_row(rows, i, x + i * w.columns(), target);
  std::vector<float> y(static_cast<std::size_t>(count * w.rows()), poison);
  for (const slice& s : slices)
    multiply(w, rows, y.data(), w.rows(), s.begin, s.end);
  return y;
}

std::vector<float> product(const packed_matrix& w, const float* x, int count, isa target) {
  return product(w, x, count, target, {{0, w.rows()}});
}

struct sums {
  double value = 0;     // the product in double precision
  double magnitude = 0; // sum of |w| |x|
  double rounding = 0;  // the most that rounding the input to bytes can change: sum of |w| * (block's largest |x|) / 254
};

sums exact_sums(const float* w, const float* x, std::int64_t columns) {
  sums out;
  for (std::int64_t c = 0; c < columns; c += 32) {
    double top = 0, weight = 0;
    for (std::int64_t i = c; i < std::min(c + 32, columns); ++i) {
      out.value += static_cast<double>(w[i]) * static_cast<double>(x[i]);
      out.magnitude += std::fabs(static_cast<double>(w[i]) * static_cast<double>(x[i]));
      top = std::max(top, std::fabs(static_cast<double>(x[i])));
      weight += std::fabs(static_cast<double>(w[i]));
    }
    out.rounding += weight * top / 254;
  }
  return out;
}

// A weight with a minimum is summed in two parts, each up to about `parts` times the whole.
double parts(weight_type type) {
  return plain(type) ? 1 : 40;
}

std::string name(weight_type type, isa target) {
  return std::string(info_of(type).name) + " on " + std::string(name_of(target));
}

bool same_bits(const float* a, const float* b, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    if (std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i]))
      return false;
  return true;
}

} // namespace

TEST_CASE("products of every type equal the double-precision sum when the input needs no rounding") {
  const std::uint64_t seed = test_seed();
  CAPTURE(seed);
  for (isa target : isas())
    for (weight_type type : all_types)
      for (std::int64_t columns : column_counts(type))
        for (std::int64_t rows : {1, 7, 16, 17, 49}) {
          CAPTURE(name(type, target));
          CAPTURE(columns);
          CAPTURE(rows);
          constexpr int count = 5;
          const random_weights weights(type, rows, columns, seed + static_cast<std::uint64_t>(columns * 64 + rows));
          const std::vector<float> floats = weights.floats(), x = exact_inputs(count, columns, seed + 7);
          const packed_matrix w = packed_matrix::pack(weights.view(), target);
          const std::vector<float> y = product(w, x.data(), count, target);
          double worst = 0; // in units of what a chain of f32 additions may lose
          for (int i = 0; i < count; ++i)
            for (std::int64_t r = 0; r < rows; ++r) {
              const sums s = exact_sums(floats.data() + r * columns, x.data() + i * columns, columns);
              const double chain = static_cast<double>(columns + 8) * 0x1p-24 * parts(type) * s.magnitude + 1e-30;
              const double got = static_cast<double>(y[static_cast<std::size_t>(i * rows + r)]);
              worst = std::max(worst, std::fabs(got - s.value) / chain);
            }
          CHECK(worst <= 1.0);
        }
}

TEST_CASE("products of any input stay within the rounding of the input to bytes") {
  const std::uint64_t seed = test_seed();
  CAPTURE(seed);
  for (isa target : isas())
    for (weight_type type : all_types) {
      CAPTURE(name(type, target));
      constexpr std::int64_t rows = 33, columns = 1024;
      constexpr int count = 3;
      const random_weights weights(type, rows, columns, seed);
      const std::vector<float> floats = weights.floats(), x = any_inputs(count, columns, seed + 9);
      const packed_matrix w = packed_matrix::pack(weights.view(), target);
      const std::vector<float> y = product(w, x.data(), count, target);
      double worst = 0, error = 0, square = 0;
      for (int i = 0; i < count; ++i)
        for (std::int64_t r = 0; r < rows; ++r) {
          const sums s = exact_sums(floats.data() + r * columns, x.data() + i * columns, columns);
          const double slack = (w.input_kind() == row_kind::q8     ? 1.01 * s.rounding
                                : w.input_kind() == row_kind::bf16 ? 0x1p-16 * s.magnitude
                                                                   : 0) +
                               columns * 0x1p-24 * parts(type) * s.magnitude;
          const double difference = static_cast<double>(y[static_cast<std::size_t>(i * rows + r)]) - s.value;
          worst = std::max(worst, std::fabs(difference) / slack);
          error += difference * difference;
          square += s.value * s.value;
        }
      CHECK(worst <= 1.0);
      // The whole product's relative error: what a model sees. Bytes: well under the 2e-2 we hold ourselves to.
      CHECK(std::sqrt(error / square) <= (w.input_kind() == row_kind::q8 ? 1e-2 : 2e-5));
    }
}

TEST_CASE("a row's outputs have the same bits alone, in any batch and in any slices") {
  const std::uint64_t seed = test_seed();
  CAPTURE(seed);
  for (isa target : isas())
    for (weight_type type : all_types) {
      CAPTURE(name(type, target));
      constexpr std::int64_t rows = 117, columns = 512;
      constexpr int most = 14;
      const random_weights weights(type, rows, columns, seed + 3);
      const std::vector<float> x = any_inputs(most, columns, seed + 4);
      const packed_matrix w = packed_matrix::pack(weights.view(), target);
      std::vector<float> alone;
      for (int i = 0; i < most; ++i) {
        const std::vector<float> y = product(w, x.data() + i * columns, 1, target);
        alone.insert(alone.end(), y.begin(), y.end());
      }
      for (int count = 1; count <= most; ++count) {
        CAPTURE(count);
        std::vector<slice> slices;
        for (std::int64_t at = 0; at < rows;) {
          const auto tiles = 1 + static_cast<std::int64_t>(
                                     random_at(seed + static_cast<std::uint64_t>(count), static_cast<std::uint64_t>(at)) % 5);
          const std::int64_t end = std::min(rows, at + tiles * w.tile_rows());
          slices.push_back({at, end});
          at = end;
        }
        CHECK(same_bits(product(w, x.data(), count, target).data(), alone.data(), count * rows));
        CHECK(same_bits(product(w, x.data(), count, target, slices).data(), alone.data(), count * rows));
      }
    }
}

TEST_CASE("many rows, more than one cache block of them, give the bits of one row") {
  const std::uint64_t seed = test_seed();
  CAPTURE(seed);
  for (isa target : isas())
    for (weight_type type : {weight_type::f32, weight_type::bf16, weight_type::q4_1}) {
      CAPTURE(name(type, target));
      constexpr std::int64_t rows = 40, columns = 1024;
      constexpr int count = 301;
      const random_weights weights(type, rows, columns, seed + 5);
      const std::vector<float> x = any_inputs(count, columns, seed + 6);
      const packed_matrix w = packed_matrix::pack(weights.view(), target);
      const std::vector<float> y = product(w, x.data(), count, target);
      for (int i = 0; i < count; i += 23)
        CHECK(same_bits(product(w, x.data() + i * columns, 1, target).data(), y.data() + i * rows, rows));
    }
}

TEST_CASE("a slice writes its own outputs and nothing else") {
  for (isa target : isas())
    for (weight_type type : {weight_type::f32, weight_type::q4_k}) {
      CAPTURE(name(type, target));
      constexpr std::int64_t rows = 53, columns = 256;
      constexpr int count = 3;
      const random_weights weights(type, rows, columns, 11);
      const std::vector<float> x = any_inputs(count, columns, 12);
      const packed_matrix w = packed_matrix::pack(weights.view(), target);
      const std::int64_t begin = w.tile_rows(), end = 3 * w.tile_rows();
      const std::vector<float> some = product(w, x.data(), count, target, {{begin, end}});
      const std::vector<float> last = product(w, x.data(), count, target, {{3 * w.tile_rows(), rows}});
      for (int i = 0; i < count; ++i)
        for (std::int64_t r = 0; r < rows; ++r) {
          const auto at = static_cast<std::size_t>(i * rows + r);
          CHECK((some[at] == poison) == (r < begin || r >= end));
          CHECK((last[at] == poison) == (r < 3 * w.tile_rows()));
        }
    }
}

TEST_CASE("the largest weights against the largest inputs saturate nothing") {
  for (isa target : isas())
    for (weight_type type : all_types) {
      if (plain(type))
        continue;
      for (bool top : {true, false})
        for (float value : {127.0f, -127.0f}) {
          CAPTURE(name(type, target));
          CAPTURE(top);
          CAPTURE(value);
          constexpr std::int64_t rows = 16, columns = 512;
          random_weights weights(type, rows, columns, 21);
          weights.set_all_levels(top);
          const std::vector<float> x(columns, value), floats = weights.floats();
          const packed_matrix w = packed_matrix::pack(weights.view(), target);
          const std::vector<float> y = product(w, x.data(), 1, target);
          for (std::int64_t r = 0; r < rows; ++r) {
            const sums s = exact_sums(floats.data() + r * columns, x.data(), columns);
            CHECK(std::fabs(static_cast<double>(y[static_cast<std::size_t>(r)]) - s.value) <=
                  columns * 0x1p-24 * parts(type) * s.magnitude + 1e-6);
          }
        }
    }
}

TEST_CASE("packing in parts, in any order, gives what packing at once gives") {
  for (isa target : isas())
    for (weight_type type : all_types) {
      CAPTURE(name(type, target));
      constexpr std::int64_t rows = 75, columns = 256;
      const random_weights weights(type, rows, columns, 61);
      const std::vector<float> x = any_inputs(2, columns, 62);
      const packed_matrix whole = packed_matrix::pack(weights.view(), target);
      packed_matrix parts = packed_matrix::make_room(weights.view(), target);
      const std::int64_t cut = parts.tiles() / 3;
      parts.pack_tiles(weights.view(), cut, parts.tiles());
      parts.pack_tiles(weights.view(), 0, cut);
      CHECK(same_bits(product(parts, x.data(), 2, target).data(), product(whole, x.data(), 2, target).data(), 2 * rows));
      CHECK(parts.bytes() == whole.bytes());
    }
}

TEST_CASE("an infinity or a NaN in one row leaves its neighbours' bits alone and never looks finite") {
  for (isa target : isas())
    for (weight_type type : all_types)
      for (float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                        std::numeric_limits<float>::quiet_NaN()}) {
        CAPTURE(name(type, target));
        constexpr std::int64_t rows = 20, columns = 256;
        constexpr int count = 6;
        const random_weights weights(type, rows, columns, 31);
        std::vector<float> x = any_inputs(count, columns, 32);
        const packed_matrix w = packed_matrix::pack(weights.view(), target);
        const std::vector<float> good = product(w, x.data(), count, target);
        x[3 * columns + 77] = bad;
        const std::vector<float> y = product(w, x.data(), count, target);
        for (int i = 0; i < count; ++i)
          if (i != 3)
            CHECK(same_bits(y.data() + i * rows, good.data() + i * rows, rows));
        for (std::int64_t r = 0; r < rows; ++r)
          CHECK(!std::isfinite(y[static_cast<std::size_t>(3 * rows + r)]));
      }
}

TEST_CASE("zero and tiny inputs give zero, not a division by it") {
  for (isa target : isas())
    for (weight_type type : all_types) {
      CAPTURE(name(type, target));
      constexpr std::int64_t rows = 9, columns = 256;
      const random_weights weights(type, rows, columns, 41);
      const packed_matrix w = packed_matrix::pack(weights.view(), target);
      for (float value : {0.0f, -0.0f, 1e-41f}) {
        const std::vector<float> x(columns, value);
        for (float y : product(w, x.data(), 1, target))
          CHECK(std::fabs(y) <= 1e-35f);
      }
    }
}

TEST_CASE("matrices of one kind and width share prepared rows") {
  for (isa target : isas()) {
    constexpr std::int64_t columns = 512;
    const random_weights a(weight_type::q8_0, 24, columns, 51), b(weight_type::q4_k, 40, columns, 52);
    const packed_matrix wa = packed_matrix::pack(a.view(), target), wb = packed_matrix::pack(b.view(), target);
    const std::vector<float> x = any_inputs(2, columns, 53);
    prepared_rows rows;
    reserve_rows(rows, wa, 2);
    for (int i = 0; i < 2; ++i)
      prepare_row(rows, i, x.data() + i * columns, target);
    std::vector<float> y(2 * 40);
    multiply(wb, rows, y.data(), 40, 0, 40);
    CHECK(same_bits(y.data(), product(wb, x.data(), 2, target).data(), 80));
  }
}

TEST_CASE("every instruction set of this machine passes its self-test") {
  for (isa target : isas()) {
    CAPTURE(std::string(name_of(target)));
    CHECK(self_test(target));
  }
}
