// Which instruction set the kernels use; chosen once at start.
#pragma once
#include <optional>
#include <string_view>

namespace troupe::cpu {

enum class isa {
  plain,  // portable C++
  avx2,   // AVX2, FMA, F16C
  avx512, // AVX-512 F/BW/DQ/VL with VNNI and BF16
};

std::string_view name_of(isa i) noexcept;
std::optional<isa> isa_named(std::string_view name) noexcept;
bool machine_has(isa i) noexcept;
isa best_isa() noexcept;

} // namespace troupe::cpu
