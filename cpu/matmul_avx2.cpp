// Compiled for AVX2, FMA and F16C; elsewhere the plain kernels, which never run under this name.
#include "cpu/matmul_table.hpp"

#if defined(__x86_64__)
#include "cpu/matmul_kernels.hpp"
#include "cpu/matmul_ops_avx2.hpp"
#include "cpu/matmul_prepare_x86.hpp"

namespace troupe::cpu {

const kernel_table& avx2_kernels() noexcept {
  static constexpr kernel_table table = [] {
    kernel_table t = make_table<avx2_ops>();
    t.prepare_f32 = plain_prepare<avx2_ops::group_rows>::f32;
    t.prepare_bf16 = plain_prepare<avx2_ops::group_rows>::bf16;
    t.prepare_q8 = x86_prepare<avx2_ops::group_rows>::q8;
    return t;
  }();
  return table;
}

} // namespace troupe::cpu
#else
namespace troupe::cpu {
const kernel_table& avx2_kernels() noexcept {
  return plain_kernels();
}
} // namespace troupe::cpu
#endif
