#include "model/weight_types.hpp"

#include <array>
#include <cstring>

#include "model/weight_types_blocks.hpp"
#include "model/weight_types_half.hpp"

namespace troupe {

namespace {

// Indexed by weight_type.
constexpr std::array<weight_type_info, weight_type_count> infos{{
    {"F32", 1, 4},
    {"F16", 1, 2},
    {"BF16", 1, 2},
    {"Q8_0", 32, 34},
    {"Q4_0", 32, 18},
    {"Q4_1", 32, 20},
    {"Q5_0", 32, 22},
    {"Q5_1", 32, 24},
    {"Q4_K", 256, 144},
    {"Q5_K", 256, 176},
    {"Q6_K", 256, 210},
}};
static_assert(static_cast<int>(weight_type::q6_k) + 1 == weight_type_count, "a type without a row");

constexpr char upper(char c) noexcept {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size())
    return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (upper(a[i]) != upper(b[i]))
      return false;
  return true;
}

} // namespace

const weight_type_info& info_of(weight_type type) noexcept {
  return infos[static_cast<std::size_t>(type)];
}

std::optional<weight_type> weight_type_named(std::string_view name) noexcept {
  for (std::size_t i = 0; i < infos.size(); ++i)
    if (equal_ignoring_case(infos[i].name, name))
      return static_cast<weight_type>(i);
  return std::nullopt;
}

void dequantize_row(weight_type type, const std::byte* from, float* to, std::int64_t count) noexcept {
  const std::int64_t n = count / info_of(type).block_weights;
  switch (type) {
  case weight_type::f32: std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(float)); return;
  case weight_type::f16:
    for (std::int64_t i = 0; i < count; ++i)
      to[i] = half_to_float(load<std::uint16_t>(from + 2 * i));
    return;
  case weight_type::bf16:
    for (std::int64_t i = 0; i < count; ++i)
      to[i] = bfloat_to_float(load<std::uint16_t>(from + 2 * i));
    return;
  case weight_type::q8_0: return blocks::expand_q8_0(from, to, n);
  case weight_type::q4_0: return blocks::expand_q4_0(from, to, n);
  case weight_type::q4_1: return blocks::expand_q4_1(from, to, n);
  case weight_type::q5_0: return blocks::expand_q5_0(from, to, n);
  case weight_type::q5_1: return blocks::expand_q5_1(from, to, n);
  case weight_type::q4_k: return blocks::expand_q4_k(from, to, n);
  case weight_type::q5_k: return blocks::expand_q5_k(from, to, n);
  case weight_type::q6_k: return blocks::expand_q6_k(from, to, n);
  }
}

void quantize_row(weight_type type, const float* from, std::byte* to, std::int64_t count) noexcept {
  const std::int64_t n = count / info_of(type).block_weights;
  switch (type) {
  case weight_type::f32: std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(float)); return;
  case weight_type::f16:
    for (std::int64_t i = 0; i < count; ++i)
      store(to + 2 * i, float_to_half(from[i]));
    return;
  case weight_type::bf16:
    for (std::int64_t i = 0; i < count; ++i)
      store(to + 2 * i, float_to_bfloat(from[i]));
    return;
  case weight_type::q8_0: return blocks::pack_q8_0(from, to, n);
  case weight_type::q4_0: return blocks::pack_q4_0(from, to, n);
  case weight_type::q4_1: return blocks::pack_q4_1(from, to, n);
  case weight_type::q5_0: return blocks::pack_q5_0(from, to, n);
  case weight_type::q5_1: return blocks::pack_q5_1(from, to, n);
  case weight_type::q4_k: return blocks::pack_q4_k(from, to, n);
  case weight_type::q5_k: return blocks::pack_q5_k(from, to, n);
  case weight_type::q6_k: return blocks::pack_q6_k(from, to, n);
  }
}

} // namespace troupe
