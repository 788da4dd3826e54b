#include "cpu/attention_kernels.hpp"
#include "cpu/elementwise_kernels.hpp"
#include "cpu/kv_rows.hpp"
#include "cpu/simd_avx512.hpp"
#include "cpu/vector_kernels.hpp"

namespace troupe::cpu {

const vector_kernels avx512_vector_kernels = {
    .target = isa::avx512,
    .add = elementwise<simd_avx512>::add,
    .rms_norm = elementwise<simd_avx512>::rms_norm,
    .silu_multiply = elementwise<simd_avx512>::silu_multiply,
    .rotate = elementwise<simd_avx512>::rotate,
    .rows = {kv_rows<simd_avx512, kv_type::f16>::kernels(), kv_rows<simd_avx512, kv_type::bf16>::kernels(),
             kv_rows<simd_avx512, kv_type::int8>::kernels(), kv_rows<simd_avx512, kv_type::int4>::kernels()},
    .attend = attention<simd_avx512>::attend,
    .merge = attention<simd_avx512>::merge,
};

} // namespace troupe::cpu
