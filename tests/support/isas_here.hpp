// The instruction sets whose kernels this machine can run.
#pragma once
#include <vector>

#include "cpu/isa.hpp"

namespace troupe::testing {

inline std::vector<cpu::isa> isas_here() {
  std::vector<cpu::isa> out;
  for (const cpu::isa i : {cpu::isa::plain, cpu::isa::avx2, cpu::isa::avx512})
    if (cpu::machine_has(i))
      out.push_back(i);
  return out;
}

} // namespace troupe::testing
