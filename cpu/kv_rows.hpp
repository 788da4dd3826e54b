// The rows of a block (kv_layout.hpp) for each KV type, on the vector operations V (simd_*.hpp): written once a token, read in
// registers by attention. Reading a number is the same operations on the same operands whoever reads it, so that a row that is
// widened to floats first gives the same bits. Uses nothing of the standard library that could be shared with translation units
// of another instruction set.
//
// A reader has load(token, base, v): numbers base + v * width and on, where base is a multiple of int4_group or v is 0; `span`:
// how many registers share what is read besides the numbers, and are best read together; and scale_of(): null, or [token] what
// the numbers are still to be multiplied with by whoever reads, since once a score or weight is cheaper than once a number.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "cpu/elementwise_kernels.hpp"
#include "cpu/kv_layout.hpp"
#include "cpu/vector_kernels.hpp"

namespace troupe::cpu {

template <class V, kv_type T>
struct kv_rows;

// What every type's rows share.
template <class V, class Rows>
struct kv_rows_base {
  using reg = typename V::reg;
  using math = elementwise<V>;
  static constexpr int width = V::width;

  static constexpr kv_row_kernels kernels() noexcept { return {&Rows::store, &load_row}; }

  static void load_row(const std::byte* block, int token, float* x, int head_dim) noexcept {
    const Rows rows = Rows::at(block, padded(head_dim));
    const reg scale = V::set(rows.scale_of() ? rows.scale_of()[token] : 1.0f);
    const auto number = [&](int i) { return V::mul(rows.load(token, i, 0), scale); };
    math::over(
        head_dim, [&](int i) { V::store(x + i, number(i)); },
        [&](int i, int count) { math::store_part(x + i, count, number(i)); });
  }
  static constexpr const float* scale_of() noexcept { return nullptr; }

protected:
  // put(i, numbers) for every register of a row, zeros beyond n.
  template <class Put>
  static void each(const float* x, int n, Put put) noexcept {
    math::over(
        n, [&](int i) { put(i, V::load(x + i)); }, [&](int i, int count) { put(i, math::load_part(x + i, count)); });
    for (int i = (n + width - 1) / width * width; i < padded(n); i += width)
      put(i, V::set(0.0f));
  }
  // 0, or NaN where a number is infinite or none.
  static float poison(const float* x, int n) noexcept {
    reg sum = V::set(0.0f);
    each(x, n, [&](int, reg a) { sum = V::fma(a, V::set(0.0f), sum); });
    return V::sum(sum);
  }
  // Whole numbers in [low, high], NaN being low.
  static reg code(reg x, float low, float high) noexcept { return V::round(V::min(V::max(x, V::set(low)), V::set(high))); }

  template <class T>
  static T read(const std::byte* p) noexcept {
    T x;
    std::memcpy(&x, p, sizeof x);
    return x;
  }
  template <class T>
  static void write(std::byte* p, T x) noexcept {
    std::memcpy(p, &x, sizeof x);
  }
};

// Not a KV type: rows that were widened, [token][dim].
template <class V>
struct float_rows {
  static constexpr int span = 1;
  const float* numbers;
  int dim;
  typename V::reg load(int token, int base, int v) const noexcept {
    return V::load(numbers + static_cast<std::ptrdiff_t>(token) * dim + base + v * V::width);
  }
};

template <class V>
struct kv_rows<V, kv_type::f16> : kv_rows_base<V, kv_rows<V, kv_type::f16>> {
  static constexpr int span = 1;
  const std::uint16_t* numbers = nullptr;
  int dim = 0;

  static kv_rows at(const std::byte* block, int dim) noexcept {
    kv_rows r;
    r.numbers = reinterpret_cast<const std::uint16_t*>(block);
    r.dim = dim;
    return r;
  }
  typename V::reg load(int token, int base, int v) const noexcept {
    return V::load(numbers + static_cast<std::ptrdiff_t>(token) * dim + base + v * V::width);
  }
  static void store(std::byte* block, int token, const float* x, int n) noexcept {
    auto* to = reinterpret_cast<std::uint16_t*>(block) + static_cast<std::ptrdiff_t>(token) * padded(n);
    kv_rows::each(x, n, [=](int i, typename V::reg a) { V::store_half(to + i, a); });
  }
};

template <class V>
struct kv_rows<V, kv_type::bf16> : kv_rows_base<V, kv_rows<V, kv_type::bf16>> {
  static constexpr int span = 1;
  const std::uint16_t* numbers = nullptr;
  int dim = 0;

  static kv_rows at(const std::byte* block, int dim) noexcept {
    kv_rows r;
    r.numbers = reinterpret_cast<const std::uint16_t*>(block);
    r.dim = dim;
    return r;
  }
  typename V::reg load(int token, int base, int v) const noexcept {
    return V::load_bfloat(numbers + static_cast<std::ptrdiff_t>(token) * dim + base + v * V::width);
  }
  static void store(std::byte* block, int token, const float* x, int n) noexcept {
    auto* to = reinterpret_cast<std::uint16_t*>(block) + static_cast<std::ptrdiff_t>(token) * padded(n);
    kv_rows::each(x, n, [=](int i, typename V::reg a) { V::store_bfloat(to + i, a); });
  }
};

// number = code * scale, scale = the largest magnitude / 127.
template <class V>
struct kv_rows<V, kv_type::int8> : kv_rows_base<V, kv_rows<V, kv_type::int8>> {
  using reg = typename V::reg;
  static constexpr int span = 1;
  const std::int8_t* codes = nullptr;
  const float* scales = nullptr; // [token]
  int dim = 0;

  static kv_rows at(const std::byte* block, int dim) noexcept {
    kv_rows r;
    r.codes = reinterpret_cast<const std::int8_t*>(block);
    r.scales = reinterpret_cast<const float*>(block + static_cast<std::ptrdiff_t>(limits::page_tokens) * dim);
    r.dim = dim;
    return r;
  }
  reg load(int token, int base, int v) const noexcept {
    return V::load_bytes(codes + static_cast<std::ptrdiff_t>(token) * dim + base + v * V::width);
  }
  const float* scale_of() const noexcept { return scales; }
  static void store(std::byte* block, int token, const float* x, int n) noexcept {
    reg top = V::set(0.0f);
    kv_rows::each(x, n, [&](int, reg a) { top = V::max(top, V::max(a, V::sub(V::set(0.0f), a))); });
    const float most = V::highest(top);
    const reg inverse = V::set(most > 1e-30f ? 127.0f / most : 0.0f); // below: zeros, lest the quotient be infinite
    auto* to = reinterpret_cast<std::int8_t*>(block) + static_cast<std::ptrdiff_t>(token) * padded(n);
    kv_rows::each(x, n, [=](int i, reg a) { V::store_bytes(to + i, kv_rows::code(V::mul(a, inverse), -127.0f, 127.0f)); });
    kv_rows::write(block + static_cast<std::ptrdiff_t>(limits::page_tokens) * padded(n) +
                       4 * static_cast<std::ptrdiff_t>(token),
                   most / 127.0f + kv_rows::poison(x, n));
  }
};

// number = code * scale + offset, for each int4_group of a row: codes 0 to 15 from the least number to the greatest. Scale and
// offset are rounded outwards, so that neither end is cut off. Precondition: n is a multiple of int4_group.
template <class V>
struct kv_rows<V, kv_type::int4> : kv_rows_base<V, kv_rows<V, kv_type::int4>> {
  using reg = typename V::reg;
  static constexpr int span = int4_group / V::width;
  const std::uint8_t* codes = nullptr;
  const std::byte* scales = nullptr; // [token][group], pairs of bfloats
  std::ptrdiff_t row_bytes = 0, row_groups = 0;

  static kv_rows at(const std::byte* block, int dim) noexcept {
    kv_rows r;
    r.codes = reinterpret_cast<const std::uint8_t*>(block);
    r.row_bytes = dim / 2;
    r.scales = block + limits::page_tokens * r.row_bytes;
    r.row_groups = dim / int4_group;
    return r;
  }
  reg load(int token, int base, int v) const noexcept {
    const std::ptrdiff_t group = token * row_groups + base / int4_group + v * V::width / int4_group;
    const auto pair = kv_rows::template read<std::uint32_t>(scales + 4 * group);
    const reg numbers = V::load_nibbles(codes + token * row_bytes + base / 2 + v * V::width / 2);
    return V::fma(numbers, V::set_upper(pair), V::set_lower(pair));
  }
  static void store(std::byte* block, int token, const float* x, int n) noexcept {
    const std::ptrdiff_t bytes = n / 2, groups = n / int4_group;
    auto* to = reinterpret_cast<std::uint8_t*>(block) + token * bytes;
    std::byte* scales_to = block + limits::page_tokens * bytes + 4 * token * groups;
    const bool sound = kv_rows::poison(x, n) == 0.0f;
    for (int g = 0; g < n; g += int4_group) {
      reg top = V::load(x + g), bottom = V::sub(V::set(0.0f), top); // bottom: negated
      for (int i = g + V::width; i < g + int4_group; i += V::width) {
        top = V::max(top, V::load(x + i));
        bottom = V::max(bottom, V::sub(V::set(0.0f), V::load(x + i)));
      }
      const float offset = -bfloat_above(V::highest(bottom));
      const float scale = bfloat_above((V::highest(top) - offset) / 15.0f);
      const reg inverse = V::set(scale > 1e-30f ? 1.0f / scale : 0.0f);
      for (int i = g; i < g + int4_group; i += V::width)
        V::store_nibbles(to + i / 2, kv_rows::code(V::mul(V::sub(V::load(x + i), V::set(offset)), inverse), 0.0f, 15.0f));
      kv_rows::write(scales_to + g / int4_group * 4, sound ? bits_of(scale) | bits_of(offset) >> 16 : not_numbers);
    }
  }

private:
  static constexpr std::uint32_t not_numbers = 0x7fc0'7fc0u;

  static std::uint32_t bits_of(float x) noexcept {
    std::uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
  }
  // The least bfloat that is not below x.
  static float bfloat_above(float x) noexcept {
    std::uint32_t bits = bits_of(x);
    if ((bits & 0xffffu) != 0 && x > 0)
      bits += 0x1'0000u;
    bits &= 0xffff'0000u;
    float f;
    std::memcpy(&f, &bits, sizeof f);
    return f;
  }
};

} // namespace troupe::cpu
