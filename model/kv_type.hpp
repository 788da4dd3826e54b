// How a backend keeps keys and values between steps. Keys and values may differ; a backend says which it has kernels for.
#pragma once
#include <optional>
#include <string_view>

namespace troupe {

enum class kv_type {
  f16,  // IEEE half precision
  bf16, // the upper half of a float
  int8, // whole numbers of 8 bits, one scale a token and KV head
  int4, // whole numbers of 4 bits, one scale and one offset for each 32 of a token and KV head
};
inline constexpr kv_type kv_types_all[] = {kv_type::f16, kv_type::bf16, kv_type::int8, kv_type::int4};
inline constexpr int kv_type_count = 4;

constexpr std::string_view name_of(kv_type t) noexcept {
  switch (t) {
    case kv_type::f16: return "f16";
    case kv_type::bf16: return "bf16";
    case kv_type::int8: return "int8";
    case kv_type::int4: return "int4";
  }
  return "unknown";
}

constexpr std::optional<kv_type> kv_type_named(std::string_view name) noexcept {
  for (const kv_type t : kv_types_all)
    if (name == name_of(t))
      return t;
  return std::nullopt;
}

struct kv_types {
  kv_type keys = kv_type::f16;
  kv_type values = kv_type::f16;
};

} // namespace troupe
