#include "cpu/vector_kernels.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/random.hpp"
#include "tests/support/isas_here.hpp"

using namespace troupe;
using namespace troupe::cpu;
using testing::isas_here;

namespace {

constexpr std::uint64_t seed = 20260;

std::vector<float> random_floats(std::uint64_t key, int n, double low, double high) {
  std::vector<float> x(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i)
    x[static_cast<std::size_t>(i)] = static_cast<float>(low + (high - low) * uniform_at(key, static_cast<std::uint64_t>(i)));
  return x;
}

// Value of a half, from the definition.
double half_value(std::uint16_t h) {
  const int exponent = (h >> 10) & 31, mantissa = h & 1023;
  const double size = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return h & 0x8000 ? -size : size;
}

} // namespace

TEST_CASE("RMSNorm agrees with doubles at lengths that fill no register") {
  INFO("seed ", seed);
  for (isa target : isas_here())
    for (int n : {1, 7, 8, 31, 64, 80, 576, 1000}) {
      const auto x = random_floats(seed, n, -3, 3), w = random_floats(seed + 1, n, 0.5, 1.5);
      std::vector<float> y(static_cast<std::size_t>(n) + 1, 77.0f);
      vector_kernels_for(target).rms_norm(x.data(), w.data(), y.data(), n, 1e-6f);
      double squares = 0;
      for (float v : x)
        squares += static_cast<double>(v) * v;
      const double scale = 1 / std::sqrt(squares / n + 1e-6);
      for (std::size_t i = 0; i < x.size(); ++i)
        CHECK(y[i] == doctest::Approx(x[i] * scale * w[i]).epsilon(2e-6));
      CHECK(y.back() == 77.0f); // nothing beyond the end is written
    }
}

TEST_CASE("SwiGLU agrees with doubles over the whole range of exp") {
  for (isa target : isas_here()) {
    std::vector<float> gate;
    for (double x = -120; x <= 120; x += 0.37)
      gate.push_back(static_cast<float>(x));
    gate.push_back(0.0f);
    const std::vector<float> before = gate;
    const std::vector<float> up(gate.size(), 1.25f);
    vector_kernels_for(target).silu_multiply(gate.data(), up.data(), static_cast<int>(gate.size()));
    for (std::size_t i = 0; i < gate.size(); ++i) {
      const double x = before[i];
      const double expected = x / (1 + std::exp(-x)) * 1.25;
      CHECK(std::abs(gate[i] - expected) <= 1e-6 * std::abs(expected) + 1e-36);
    }
    float odd[2] = {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()};
    const float one[2] = {1, 1};
    vector_kernels_for(target).silu_multiply(odd, one, 2);
    CHECK(std::isnan(odd[0]));
    CHECK(std::isinf(odd[1]));
  }
}

TEST_CASE("both kinds of rotation turn each pair by its angle") {
  for (isa target : isas_here())
    for (bool adjacent : {false, true})
      for (int dim : {2, 6, 16, 64, 80, 96, 128}) {
        const auto x = random_floats(seed + 2, dim, -2, 2), angles = random_floats(seed + 3, dim / 2, 0, 6);
        std::vector<float> head = x, cosine(x.size()), sine(x.size());
        for (std::size_t i = 0; i < angles.size(); ++i) {
          const float c = std::cos(angles[i]), s = std::sin(angles[i]);
          if (adjacent) {
            cosine[2 * i] = cosine[2 * i + 1] = c;
            sine[2 * i] = -s;
            sine[2 * i + 1] = s;
          } else {
            cosine[i] = c;
            sine[i] = s;
          }
        }
        vector_kernels_for(target).rotate(head.data(), cosine.data(), sine.data(), dim, adjacent);
        for (std::size_t i = 0; i < angles.size(); ++i) {
          const std::size_t a = adjacent ? 2 * i : i, b = adjacent ? 2 * i + 1 : i + angles.size();
          const double c = std::cos(static_cast<double>(angles[i])), s = std::sin(static_cast<double>(angles[i]));
          CHECK(std::abs(head[a] - (x[a] * c - x[b] * s)) < 1e-6);
          CHECK(std::abs(head[b] - (x[a] * s + x[b] * c)) < 1e-6);
        }
      }
}

TEST_CASE("halves are the nearest ones, saturate instead of overflowing, and rows are filled up with zeros") {
  std::vector<float> x = {0.0f,
                          -0.0f,
                          1.0f,
                          65504.0f,
                          65519.0f,
                          65520.0f,
                          1e9f,
                          -1e30f,
                          std::numeric_limits<float>::infinity(),
                          6e-8f,
                          3e-8f,
                          2.9e-8f,
                          -6.1e-5f,
                          1.0f + 1.0f / 2048,
                          1.0f + 3.0f / 2048};
  for (int e = -30; e < 17; ++e)
    for (float m : random_floats(seed + 4 + static_cast<std::uint64_t>(e + 40), 9, -2, 2))
      x.push_back(std::ldexp(m, e));
  for (isa target : isas_here()) {
    std::vector<std::uint16_t> half(static_cast<std::size_t>(padded(static_cast<int>(x.size()))), 0xffff);
    const auto store = vector_kernels_for(target).rows_of(kv_type::f16).store;
    store(reinterpret_cast<std::byte*>(half.data()), 0, x.data(), static_cast<int>(x.size()));
    for (std::size_t i = 0; i < x.size(); ++i) {
      CAPTURE(x[i]);
      const double value = half_value(half[i]), wanted = std::clamp(static_cast<double>(x[i]), -65504.0, 65504.0);
      const double step =
          std::max(std::ldexp(1.0, std::max(-14, std::ilogb(wanted == 0 ? 1e-30 : wanted)) - 10), std::ldexp(1.0, -24));
      CHECK(std::abs(value - wanted) <= step / 2);
    }
    for (std::size_t i = x.size(); i < half.size(); ++i)
      CHECK(half[i] == 0);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    store(reinterpret_cast<std::byte*>(half.data()), 0, &nan, 1);
    CHECK((half[0] & 0x7c00) == 0x7c00);
    CHECK((half[0] & 0x03ff) != 0);
  }
}

TEST_CASE("adding touches the asked length alone") {
  for (isa target : isas_here())
    for (int n : {1, 8, 13, 64}) {
      auto x = random_floats(seed + 9, n + 1, -1, 1);
      const auto before = x, y = random_floats(seed + 10, n + 1, -1, 1);
      vector_kernels_for(target).add(x.data(), y.data(), n);
      for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i)
        CHECK(x[i] == before[i] + y[i]);
      CHECK(x.back() == before.back());
    }
}

TEST_CASE("every instruction set of this machine passes the self-test") {
  for (isa target : isas_here())
    CHECK(vector_self_test(target));
}
