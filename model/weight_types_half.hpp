// The 16-bit float formats of model files, converted without hardware help: IEEE binary16 and bfloat16. Rounding is to the
// nearest, ties to even; NaN stays NaN. Pure functions, any thread.
#pragma once
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace troupe {

static_assert(std::endian::native == std::endian::little, "model files are little-endian and are read in place");

inline float half_to_float(std::uint16_t half) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t exponent = (half >> 10) & 31u;
  const std::uint32_t mantissa = half & 0x3ffu;
  if (exponent == 31)
    return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) // zero or subnormal: a multiple of 2^-24
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(static_cast<float>(mantissa) * 0x1p-24f) | sign);
  return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
}

inline std::uint16_t float_to_half(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u)
    return static_cast<std::uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) // 65520 and above round to infinity
    return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) { // below 2^-14: a multiple of 2^-24
    const float steps = std::nearbyint(std::bit_cast<float>(magnitude) * 0x1p24f);
    return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(steps));
  }
  magnitude += 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000u) >> 13));
}

inline float bfloat_to_float(std::uint16_t bfloat) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bfloat) << 16);
}

inline std::uint16_t float_to_bfloat(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return static_cast<std::uint16_t>((bits >> 16) | 64u); // keep it a NaN, and a quiet one
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// Files promise 2-byte alignment at best, so everything wider than a byte is read and written through these.
template <class T>
T load(const std::byte* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
void store(std::byte* to, T value) noexcept {
  std::memcpy(to, &value, sizeof value);
}

} // namespace troupe
