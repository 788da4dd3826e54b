// One model's weights as the CPU's kernels read them, cut into slices that threads take in turn. Immutable once packed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/log.hpp"
#include "base/result.hpp"
#include "cpu/isa.hpp"
#include "cpu/packed_matrix.hpp"
#include "cpu/thread_team.hpp"
#include "model/weights.hpp"

namespace troupe::cpu {

// Some output rows of one matrix.
struct matrix_slice {
  const packed_matrix* matrix = nullptr;
  std::ptrdiff_t column = 0; // where the matrix's first output row stands in a row of results
  std::int64_t row_begin = 0;
  std::int64_t row_end = 0;
};

// Matrices that read the same input rows, computed in one phase.
struct matrix_group {
  std::vector<matrix_slice> slices; // of about equal bytes
  // One matrix of each row kind that the group reads: rows are prepared once a kind.
  std::vector<const packed_matrix*> kinds;
};

struct packed_layer {
  std::vector<float> attention_norm, ffn_norm; // [hidden]
  std::vector<float> q_norm, k_norm;           // [head_dim]; empty without qk_norm
  std::vector<float> qkv_bias;                 // [q_width + 2 kv_width]; empty without qkv_bias
  matrix_group qkv;                            // results: q, k, v side by side
  matrix_group o;
  matrix_group gate, up; // slice i of both covers the same rows; gate's kinds serve both
  matrix_group down;
};

struct packed_model {
  model_weights source; // the embedding's rows are read from it
  isa target = isa::plain;
  std::vector<packed_layer> layers;
  std::vector<float> output_norm; // [hidden]
  matrix_group output;
  std::size_t bytes = 0; // packed, as one decode step reads them
  std::vector<packed_matrix> matrices;

  int qkv_width() const noexcept { return source.shape.q_width() + 2 * source.shape.kv_width(); }
};

// Packs with all threads of the team and logs progress. errc::model_format where a tensor's shape contradicts the
// hyperparameters, errc::no_memory.
result<packed_model> pack_model(model_weights weights, isa target, thread_team& team, const log_sink& log);

} // namespace troupe::cpu
