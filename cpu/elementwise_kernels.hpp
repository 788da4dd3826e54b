// Normalisation, rotation and activation over the vector operations V (simd_*.hpp). Uses nothing of the standard library that
// could be shared with translation units of another instruction set.
#pragma once
#include <cstdint>
#include <cstring>

#include "cpu/vector_kernels.hpp"

namespace troupe::cpu {

template <class V>
struct elementwise {
  using reg = typename V::reg;
  static constexpr int width = V::width;

  // e^x to about 1 ulp: x = n ln 2 + r with |r| <= ln 2 / 2, then a polynomial in r (Taylor, to the 7th power). 0 below -87.3,
  // infinite above 88.3, NaN for NaN.
  static reg exp(reg x) noexcept {
    const reg limited = V::min(V::set(88.8f), V::max(V::set(-88.0f), x));
    const reg n = V::round(V::mul(limited, V::set(1.44269504f)));
    reg r = V::fma(n, V::set(-0.693359375f), limited);
    r = V::fma(n, V::set(2.12194440e-4f), r);
    reg p = V::set(1.0f / 5040);
    p = V::fma(p, r, V::set(1.0f / 720));
    p = V::fma(p, r, V::set(1.0f / 120));
    p = V::fma(p, r, V::set(1.0f / 24));
    p = V::fma(p, r, V::set(1.0f / 6));
    p = V::fma(p, r, V::set(0.5f));
    p = V::fma(p, r, V::set(1.0f));
    p = V::fma(p, r, V::set(1.0f));
    return V::zero_below(x, -87.3f, V::mul(p, V::power_of_2(n)));
  }

  static reg silu(reg x) noexcept { return V::div(x, V::add(V::set(1.0f), exp(V::sub(V::set(0.0f), x)))); }

  // Calls body(offset of a full register's worth) over [0, n), then tail(offset, count) for what is left.
  template <class Body, class Tail>
  static void over(int n, Body body, Tail tail) noexcept {
    int i = 0;
    for (; i + width <= n; i += width)
      body(i);
    if (i < n)
      tail(i, n - i);
  }

  // A register with the first `count` of p and zeros.
  static reg load_part(const float* p, int count) noexcept {
    float part[width] = {};
    std::memcpy(part, p, static_cast<std::size_t>(count) * sizeof(float));
    return V::load(part);
  }
  static void store_part(float* p, int count, reg x) noexcept {
    float part[width];
    V::store(part, x);
    std::memcpy(p, part, static_cast<std::size_t>(count) * sizeof(float));
  }

  static void add(float* x, const float* y, int n) noexcept {
    over(
        n, [=](int i) { V::store(x + i, V::add(V::load(x + i), V::load(y + i))); },
        [=](int i, int count) { store_part(x + i, count, V::add(load_part(x + i, count), load_part(y + i, count))); });
  }

  static float sum_of_squares(const float* x, int n) noexcept {
    reg s0 = V::set(0), s1 = V::set(0), s2 = V::set(0), s3 = V::set(0);
    int i = 0;
    for (; i + 4 * width <= n; i += 4 * width) {
      const reg a = V::load(x + i), b = V::load(x + i + width), c = V::load(x + i + 2 * width), d = V::load(x + i + 3 * width);
      s0 = V::fma(a, a, s0);
      s1 = V::fma(b, b, s1);
      s2 = V::fma(c, c, s2);
      s3 = V::fma(d, d, s3);
    }
    for (; i < n; i += width) {
      const reg a = i + width <= n ? V::load(x + i) : load_part(x + i, n - i);
      s0 = V::fma(a, a, s0);
    }
    return V::sum(V::add(V::add(s0, s1), V::add(s2, s3)));
  }

  static void rms_norm(const float* x, const float* weight, float* y, int n, float epsilon) noexcept {
    const float mean = sum_of_squares(x, n) / static_cast<float>(n);
    const reg scale = V::set(1.0f / V::square_root(mean + epsilon));
    over(
        n, [=](int i) { V::store(y + i, V::mul(V::mul(V::load(x + i), scale), V::load(weight + i))); },
        [=](int i, int count) {
          store_part(y + i, count, V::mul(V::mul(load_part(x + i, count), scale), load_part(weight + i, count)));
        });
  }

  static void silu_multiply(float* gate, const float* up, int n) noexcept {
    over(
        n, [=](int i) { V::store(gate + i, V::mul(silu(V::load(gate + i)), V::load(up + i))); },
        [=](int i, int count) {
          store_part(gate + i, count, V::mul(silu(load_part(gate + i, count)), load_part(up + i, count)));
        });
  }

  static void rotate(float* head, const float* cosine, const float* sine, int dim, bool adjacent) noexcept {
    if (adjacent)
      rotate_adjacent(head, cosine, sine, dim);
    else
      rotate_halves(head, head + dim / 2, cosine, sine, dim / 2);
  }

  static void rotate_adjacent(float* x, const float* cosine, const float* sine, int dim) noexcept {
    const auto turned = [](reg v, reg c, reg s) { return V::fma(v, c, V::mul(V::swap_pairs(v), s)); };
    over(
        dim, [=](int i) { V::store(x + i, turned(V::load(x + i), V::load(cosine + i), V::load(sine + i))); },
        [=](int i, int count) {
          const reg v = turned(load_part(x + i, count), load_part(cosine + i, count), load_part(sine + i, count));
          store_part(x + i, count, v);
        });
  }

  static void rotate_halves(float* a, float* b, const float* cosine, const float* sine, int pairs) noexcept {
    const auto first = [](reg x, reg y, reg c, reg s) { return V::fma(x, c, V::sub(V::set(0.0f), V::mul(y, s))); };
    const auto second = [](reg x, reg y, reg c, reg s) { return V::fma(y, c, V::mul(x, s)); };
    over(
        pairs,
        [=](int i) {
          const reg x = V::load(a + i), y = V::load(b + i), c = V::load(cosine + i), s = V::load(sine + i);
          V::store(a + i, first(x, y, c, s));
          V::store(b + i, second(x, y, c, s));
        },
        [=](int i, int count) {
          const reg x = load_part(a + i, count), y = load_part(b + i, count);
          const reg c = load_part(cosine + i, count), s = load_part(sine + i, count);
          store_part(a + i, count, first(x, y, c, s));
          store_part(b + i, count, second(x, y, c, s));
        });
  }
};

} // namespace troupe::cpu
