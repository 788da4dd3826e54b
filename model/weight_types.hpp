// Storage types beyond what weights.hpp shows: writing them, and finding them by name. Pure functions, any thread.
//
// Quantising rounds to the nearest level of a range that the block's extremes set. Q8_0, Q4_0, Q4_1, Q5_0 and Q5_1 give the
// bytes that ggml's reference quantiser gives; the K types find their scales by least squares over few rounds and are simpler
// than ggml's. Values that are not finite give an unspecified but well-formed block.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "model/weights.hpp"

namespace troupe {

inline constexpr int weight_type_count = 11;

// Writes `count` floats (a multiple of block_weights) as blocks; the exact inverse of dequantize_row on what it returned only
// for F32.
void quantize_row(weight_type type, const float* weights, std::byte* blocks, std::int64_t count) noexcept;

// "Q4_K", "q4_k": case does not matter.
std::optional<weight_type> weight_type_named(std::string_view name) noexcept;

} // namespace troupe
