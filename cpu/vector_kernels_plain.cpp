#include "cpu/attention_kernels.hpp"
#include "cpu/elementwise_kernels.hpp"
#include "cpu/kv_rows.hpp"
#include "cpu/simd_plain.hpp"
#include "cpu/vector_kernels.hpp"

namespace troupe::cpu {

const vector_kernels plain_vector_kernels = {
    .target = isa::plain,
    .add = elementwise<simd_plain>::add,
    .rms_norm = elementwise<simd_plain>::rms_norm,
    .silu_multiply = elementwise<simd_plain>::silu_multiply,
    .rotate = elementwise<simd_plain>::rotate,
    .rows = {kv_rows<simd_plain, kv_type::f16>::kernels(), kv_rows<simd_plain, kv_type::bf16>::kernels(),
             kv_rows<simd_plain, kv_type::int8>::kernels(), kv_rows<simd_plain, kv_type::int4>::kernels()},
    .attend = attention<simd_plain>::attend,
    .merge = attention<simd_plain>::merge,
};

} // namespace troupe::cpu
