// What every KV type keeps of a row, against the numbers that were stored.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/random.hpp"
#include "cpu/vector_kernels.hpp"
#include "tests/support/isas_here.hpp"

using namespace troupe;
using namespace troupe::cpu;
using testing::isas_here;

namespace {

constexpr std::uint64_t seed = 612;

// A head with a few outliers and an offset, as keys have them.
std::vector<float> head(std::uint64_t key, int n, float size = 1.0f) {
  std::vector<float> x(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = size * (static_cast<float>(uniform_at(seed + key, i) * 2 - 1) * (i % 11 == 3 ? 8.0f : 1.0f) + 0.3f);
  return x;
}

std::vector<float> kept(const vector_kernels& k, kv_type type, const std::vector<float>& x, int token) {
  const int n = static_cast<int>(x.size());
  std::vector<std::byte> block(kv_block_bytes(type, n), std::byte{0xff});
  k.rows_of(type).store(block.data(), token, x.data(), n);
  std::vector<float> out(x.size() + 1, -99.0f);
  k.rows_of(type).load(block.data(), token, out.data(), n);
  CHECK(out.back() == -99.0f);
  out.pop_back();
  return out;
}

// The most that number i may be off: half a step of its type.
double step_of(kv_type type, const std::vector<float>& x, std::size_t i) {
  const auto size = [](float a, float b) { return std::abs(a) < std::abs(b); };
  switch (type) {
  case kv_type::f16: return std::abs(x[i]) * 0x1p-11 + 0x1p-25;
  case kv_type::bf16: return std::abs(x[i]) * 0x1p-8;
  case kv_type::int8: return std::abs(*std::max_element(x.begin(), x.end(), size)) / 127 * 0.5001;
  case kv_type::int4: {
    const auto group = x.begin() + static_cast<std::ptrdiff_t>(i / int4_group * int4_group);
    const auto [low, high] = std::minmax_element(group, group + int4_group);
    const double offset = *low - std::abs(*low) * 0x1p-7; // rounded outwards, as is the scale
    return (*high - offset) / 15 * (1 + 0x1p-7) * 0.5001;
  }
  }
  return 0;
}

} // namespace

TEST_CASE("every type keeps every number to half a step, for every head size that it fits") {
  for (const isa target : isas_here())
    for (const kv_type type : kv_types_all)
      for (const int n : {16, 20, 32, 64, 80, 96, 128, 256}) {
        if (!kv_type_fits(type, n))
          continue;
        CAPTURE(name_of(target));
        CAPTURE(name_of(type));
        CAPTURE(n);
        for (const float size : {1.0f, 1e-3f, 300.0f}) {
          const auto x = head(static_cast<std::uint64_t>(n), n, size);
          const auto got = kept(vector_kernels_for(target), type, x, n % limits::page_tokens);
          double worst = 0; // in half steps
          for (std::size_t i = 0; i < x.size(); ++i)
            worst = std::max(worst, std::abs(static_cast<double>(got[i]) - x[i]) / step_of(type, x, i));
          CHECK(worst <= 1);
        }
      }
}

TEST_CASE("every instruction set keeps the same numbers") {
  for (const isa target : isas_here())
    for (const kv_type type : kv_types_all)
      for (std::uint64_t key = 0; key < 50; ++key) {
        const auto x = head(key, 96);
        CHECK(kept(vector_kernels_for(target), type, x, 5) == kept(plain_vector_kernels, type, x, 5));
      }
}

TEST_CASE("a token's row is written without touching another's") {
  for (const isa target : isas_here())
    for (const kv_type type : kv_types_all) {
      const auto rows = vector_kernels_for(target).rows_of(type);
      std::vector<std::byte> block(kv_block_bytes(type, 64));
      std::vector<std::vector<float>> expected;
      for (int token = 0; token < limits::page_tokens; ++token) {
        const auto x = head(static_cast<std::uint64_t>(token), 64);
        expected.push_back(kept(vector_kernels_for(target), type, x, token));
        rows.store(block.data(), token, x.data(), 64);
      }
      const auto again = head(99, 64);
      rows.store(block.data(), 7, again.data(), 64);
      expected[7] = kept(vector_kernels_for(target), type, again, 7);
      for (int token = 0; token < limits::page_tokens; ++token) {
        std::vector<float> got(64);
        rows.load(block.data(), token, got.data(), 64);
        CHECK(got == expected[static_cast<std::size_t>(token)]);
      }
    }
}

TEST_CASE("zeros stay zeros, one number for all stays near, and what is no number stays none") {
  for (const isa target : isas_here())
    for (const kv_type type : kv_types_all) {
      CAPTURE(name_of(target));
      CAPTURE(name_of(type));
      const auto& k = vector_kernels_for(target);
      CHECK(kept(k, type, std::vector<float>(64), 3) == std::vector<float>(64));
      for (const float same : {1.7f, -3.3f, 1e-38f}) {
        const auto got = kept(k, type, std::vector<float>(64, same), 3);
        for (const float g : got)
          CHECK(std::abs(g - same) <= std::abs(same) * 0x1p-8f + 0x1p-25f);
      }
      for (const int at : {0, 31, 63}) {
        auto x = head(1, 64);
        x[static_cast<std::size_t>(at)] = std::numeric_limits<float>::quiet_NaN();
        CHECK(std::isnan(kept(k, type, x, 3)[static_cast<std::size_t>(at)]));
      }
    }
}
