#include "cpu/vector_kernels.hpp"

namespace troupe::cpu {

const vector_kernels& vector_kernels_for(isa target) noexcept {
#if defined(__x86_64__)
  switch (target) {
  case isa::avx2: return avx2_vector_kernels;
  case isa::avx512: return avx512_vector_kernels;
  case isa::plain: break;
  }
#endif
  return plain_vector_kernels;
}

} // namespace troupe::cpu
