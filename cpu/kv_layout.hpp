// Where numbers lie in a block: the keys, or the values, of a page's tokens in one layer and KV head.
//
// A block is the tokens' rows [token][padded(head_dim)] followed by their scales: none for f16 and bf16, a float a token for
// int8, for int4 a pair of bfloats (upper half: scale; lower half: offset) a token and group, [token][group]. Blocks are whole
// cache lines, so that those after one another stay aligned.
#pragma once
#include <cstddef>

#include "config/limits.hpp"
#include "model/kv_type.hpp"

namespace troupe::cpu {

// Rows are stored in multiples of this many numbers: the widest register's lanes.
inline constexpr int half_row_step = 16;
constexpr int padded(int count) noexcept {
  return (count + half_row_step - 1) / half_row_step * half_row_step;
}

// Numbers of a row that share a scale and an offset, which cost a bit a number; with half as many it would be two. Other sizes,
// and a scale without an offset, have not been measured against it.
inline constexpr int int4_group = 32;
static_assert(int4_group % half_row_step == 0);

constexpr bool kv_type_fits(kv_type t, int head_dim) noexcept {
  return t != kv_type::int4 || head_dim % int4_group == 0;
}

constexpr std::size_t kv_row_bytes(kv_type t, int head_dim) noexcept {
  const auto numbers = static_cast<std::size_t>(padded(head_dim));
  switch (t) {
  case kv_type::f16:
  case kv_type::bf16: return numbers * 2;
  case kv_type::int8: return numbers;
  case kv_type::int4: return numbers / 2;
  }
  return 0;
}

constexpr std::size_t kv_scale_bytes(kv_type t, int head_dim) noexcept { // of a row
  switch (t) {
  case kv_type::f16:
  case kv_type::bf16: return 0;
  case kv_type::int8: return 4;
  case kv_type::int4: return 4 * static_cast<std::size_t>(head_dim / int4_group);
  }
  return 0;
}

constexpr std::size_t kv_block_bytes(kv_type t, int head_dim) noexcept {
  return limits::page_tokens * (kv_row_bytes(t, head_dim) + kv_scale_bytes(t, head_dim));
}
static_assert(kv_block_bytes(kv_type::int8, 16) % 64 == 0 && kv_block_bytes(kv_type::int4, int4_group) % 64 == 0);

} // namespace troupe::cpu
