// The weights of one model, as views into a mapped file. Read-only, shared by any number of threads.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/hyperparameters.hpp"

namespace troupe {

// Storage types; block layouts as in GGUF (see weight_types.cpp).
enum class weight_type { f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1, q4_k, q5_k, q6_k };

struct weight_type_info {
  std::string_view name;  // "Q4_K"
  int block_weights;      // weights a block; 1 for plain types
  int block_bytes;
};
const weight_type_info& info_of(weight_type type) noexcept;

// Expands one row of `count` weights (a multiple of block_weights) to floats.
void dequantize_row(weight_type type, const std::byte* blocks, float* out, std::int64_t count) noexcept;

// A matrix [rows][columns], row-major, rows contiguous and whole blocks each. A vector has one row. Computes y = W x with
// x [columns], y [rows]. Alignment is at least 2 bytes (a block's), not more.
struct tensor_view {
  weight_type type = weight_type::f32;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  const std::byte* data = nullptr;

  explicit operator bool() const noexcept { return data != nullptr; }
  std::size_t row_bytes() const noexcept {
    const auto& i = info_of(type);
    return static_cast<std::size_t>(columns / i.block_weights) * static_cast<std::size_t>(i.block_bytes);
  }
  std::size_t bytes() const noexcept { return row_bytes() * static_cast<std::size_t>(rows); }
  const std::byte* row(std::int64_t r) const noexcept { return data + row_bytes() * static_cast<std::size_t>(r); }
};

struct layer_weights {
  tensor_view attention_norm;          // [1][hidden]
  tensor_view q, k, v;                 // [q_width][hidden], [kv_width][hidden], [kv_width][hidden]
  tensor_view q_bias, k_bias, v_bias;  // [1][q_width], [1][kv_width], [1][kv_width]; empty without qkv_bias
  tensor_view q_norm, k_norm;          // [1][head_dim]; empty without qk_norm
  tensor_view o;                       // [hidden][q_width]
  tensor_view ffn_norm;                // [1][hidden]
  tensor_view gate, up;                // [ffn][hidden]
  tensor_view down;                    // [hidden][ffn]
};

struct model_weights {
  hyperparameters shape;
  tensor_view token_embedding; // [vocabulary][hidden]
  tensor_view output_norm;     // [1][hidden]
  tensor_view output;          // [vocabulary][hidden]; the same view as token_embedding where tied
  std::vector<layer_weights> layers;
  std::shared_ptr<const void> storage; // keeps the mapping alive
  bool mapped = false; // all views lie in mapped files: drop_resident() may take what is not read any more
};

} // namespace troupe
