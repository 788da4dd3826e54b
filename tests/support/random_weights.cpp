#include "tests/support/random_weights.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/random.hpp"

namespace troupe::tests {
namespace {

// Where a block's half-precision scales lie; -1: none.
struct half_offsets {
  int first = -1, second = -1;
};

half_offsets halves_of(weight_type type) {
  switch (type) {
  case weight_type::f32:
  case weight_type::f16:
  case weight_type::bf16: return {};
  case weight_type::q8_0:
  case weight_type::q4_0:
  case weight_type::q5_0: return {.first = 0};
  case weight_type::q4_1:
  case weight_type::q5_1:
  case weight_type::q4_k:
  case weight_type::q5_k: return {.first = 0, .second = 2};
  case weight_type::q6_k: return {.first = 208};
  }
  return {};
}

// A half between 2^-8 and 2^-5, of either sign.
std::uint16_t sane_half(std::uint64_t bits) {
  return static_cast<std::uint16_t>((bits & 0x83ff) | (7 + bits % 3) << 10);
}

} // namespace

random_weights::random_weights(weight_type type, std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  view_ = {.type = type, .rows = rows, .columns = columns, .data = nullptr};
  bytes_.resize(view_.bytes());
  view_.data = bytes_.data();
  const auto put = [this](std::size_t at, auto value) { std::memcpy(bytes_.data() + at, &value, sizeof value); };
  std::uint64_t counter = 0;
  if (type == weight_type::f32 || type == weight_type::bf16) {
    const std::size_t size = type == weight_type::f32 ? 4 : 2;
    for (std::size_t at = 0; at < bytes_.size(); at += size) {
      const auto value = std::bit_cast<std::uint32_t>(static_cast<float>(uniform_at(seed, counter++) - 0.5));
      if (size == 4)
        put(at, value);
      else
        put(at, static_cast<std::uint16_t>(value >> 16));
    }
  } else if (type == weight_type::f16) {
    for (std::size_t at = 0; at < bytes_.size(); at += 2)
      put(at, sane_half(random_at(seed, counter++)));
  } else {
    for (std::byte& b : bytes_)
      b = static_cast<std::byte>(random_at(seed, counter++) >> 20);
    const half_offsets halves = halves_of(type);
    const auto block = static_cast<std::size_t>(info_of(type).block_bytes);
    for (std::size_t at = 0; at < bytes_.size(); at += block) {
      put(at + static_cast<std::size_t>(halves.first), sane_half(random_at(seed, counter++)));
      if (halves.second >= 0)
        put(at + static_cast<std::size_t>(halves.second), sane_half(random_at(seed, counter++)));
    }
  }
}

void random_weights::set_all_levels(bool top) {
  // The scales stand before the levels, but for Q6_K, where they stand behind.
  std::size_t head = 0, tail = 0;
  switch (view_.type) {
  case weight_type::f32:
  case weight_type::f16:
  case weight_type::bf16: return;
  case weight_type::q8_0:
  case weight_type::q4_0:
  case weight_type::q5_0: head = 2; break;
  case weight_type::q4_1:
  case weight_type::q5_1: head = 4; break;
  case weight_type::q4_k:
  case weight_type::q5_k: head = 16; break;
  case weight_type::q6_k: tail = 18; break;
  }
  const bool is_signed = view_.type == weight_type::q8_0;
  const std::byte level = top ? std::byte{is_signed ? std::uint8_t{0x7f} : std::uint8_t{0xff}}
                              : std::byte{is_signed ? std::uint8_t{0x80} : std::uint8_t{0}};
  const auto block = static_cast<std::size_t>(info_of(view_.type).block_bytes);
  for (std::size_t at = 0; at < bytes_.size(); at += block)
    std::fill(bytes_.begin() + static_cast<std::ptrdiff_t>(at + head),
              bytes_.begin() + static_cast<std::ptrdiff_t>(at + block - tail), level);
}

std::vector<float> random_weights::floats() const {
  std::vector<float> out(static_cast<std::size_t>(view_.rows * view_.columns));
  for (std::int64_t r = 0; r < view_.rows; ++r)
    dequantize_row(view_.type, view_.row(r), out.data() + r * view_.columns, view_.columns);
  return out;
}

} // namespace troupe::tests
