#include "cpu/isa.hpp"

namespace troupe::cpu {

std::string_view name_of(isa i) noexcept {
  switch (i) {
    case isa::plain: return "plain";
    case isa::avx2: return "avx2";
    case isa::avx512: return "avx512";
  }
  return "unknown";
}

std::optional<isa> isa_named(std::string_view name) noexcept {
  for (isa i : {isa::plain, isa::avx2, isa::avx512})
    if (name == name_of(i))
      return i;
  return std::nullopt;
}

bool machine_has(isa i) noexcept {
#if defined(__x86_64__)
  switch (i) {
    case isa::plain: return true;
    case isa::avx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
    case isa::avx512:
      return machine_has(isa::avx2) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
             __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bf16");
  }
  return false;
#else
  return i == isa::plain;
#endif
}

isa best_isa() noexcept {
  if (machine_has(isa::avx512))
    return isa::avx512;
  return machine_has(isa::avx2) ? isa::avx2 : isa::plain;
}

} // namespace troupe::cpu
