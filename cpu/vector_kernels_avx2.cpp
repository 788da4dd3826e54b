#include "cpu/attention_kernels.hpp"
#include "cpu/elementwise_kernels.hpp"
#include "cpu/kv_rows.hpp"
#include "cpu/simd_avx2.hpp"
#include "cpu/vector_kernels.hpp"

namespace troupe::cpu {

const vector_kernels avx2_vector_kernels = {
    .target = isa::avx2,
    .add = elementwise<simd_avx2>::add,
    .rms_norm = elementwise<simd_avx2>::rms_norm,
    .silu_multiply = elementwise<simd_avx2>::silu_multiply,
    .rotate = elementwise<simd_avx2>::rotate,
    .rows = {kv_rows<simd_avx2, kv_type::f16>::kernels(), kv_rows<simd_avx2, kv_type::bf16>::kernels(),
             kv_rows<simd_avx2, kv_type::int8>::kernels(), kv_rows<simd_avx2, kv_type::int4>::kernels()},
    .attend = attention<simd_avx2>::attend,
    .merge = attention<simd_avx2>::merge,
};

} // namespace troupe::cpu
