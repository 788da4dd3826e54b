#include "cpu/matmul_kernels.hpp"
#include "cpu/matmul_ops_plain.hpp"
#include "cpu/matmul_prepare_plain.hpp"

namespace troupe::cpu {

const kernel_table& plain_kernels() noexcept {
  static constexpr kernel_table table = [] {
    using prepare = plain_prepare<plain_ops::group_rows>;
    kernel_table t = make_table<plain_ops>();
    t.prepare_f32 = prepare::f32;
    t.prepare_bf16 = prepare::bf16;
    t.prepare_q8 = prepare::q8;
    return t;
  }();
  return table;
}

} // namespace troupe::cpu
