// The kernels that are not matrix products, one table an instruction set: normalisation, rotation, activation, keys and values,
// attention.
//
// All are pure functions of their arguments and may run on any thread. Each sums in an order of its own that depends on the
// shapes alone. The templates behind them are elementwise_kernels.hpp, kv_rows.hpp and attention_kernels.hpp, over the
// operations of simd_*.hpp.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/ids.hpp"
#include "config/limits.hpp"
#include "cpu/isa.hpp"
#include "cpu/kv_layout.hpp"
#include "model/attention_window.hpp"
#include "model/backend.hpp"

namespace troupe::cpu {

// Scores are normalised over this many positions at a time, aligned to it, whatever the query: fewer rescalings than by page.
inline constexpr int attention_block = 64;
// Positions are summed in chunks of this many, aligned, each on its own, then merged in order: the grain in which a long
// context is shared by threads. The value does not depend on whether it is.
inline constexpr int attention_chunk = 512;
static_assert(attention_block % limits::page_tokens == 0 && attention_chunk % attention_block == 0);
static_assert(limits::page_tokens % 8 == 0, "scores are computed eight tokens at a time");

// One KV head's share of attention for some consecutive tokens of one sequence, over the chunks [chunk_begin, chunk_end).
struct attention_task {
  const float* q = nullptr; // [tokens][group][head_dim], a token's row q_stride floats after the last
  std::ptrdiff_t q_stride = 0;
  int tokens = 0; // query tokens
  int group = 0;  // query heads that share this KV head
  int head_dim = 0;
  int position = 0;                      // of the first query token; token i attends to positions 0 .. position + i
  attention_window window;               // but for what it hides of them
  const float* sink_q = nullptr;         // as q, turned as the sinks see it; null: no query of the task is turned otherwise
  float scale = 1;                       // of the scores
  kv_types types;
  const std::byte* keys = nullptr;   // page p's block (kv_layout.hpp) is at p * page_stride
  const std::byte* values = nullptr; // likewise
  std::size_t page_stride = 0;       // bytes
  const page_id* pages = nullptr;
  int chunk_begin = 0;
  int chunk_end = 0;
  float* out = nullptr; // [tokens][group][head_dim], rows out_stride apart; written where every chunk is computed here
  std::ptrdiff_t out_stride = 0;
  float* partial = nullptr; // else: [chunk][tokens * group][partial_row(head_dim)], the chunk's numbers, not normalised
  attention_score score = attention_score::none;
  float* scores = nullptr; // [group][score_stride], where a score is asked: joined with what is there. Not of partial results
  std::ptrdiff_t score_stride = 0; // positions, in whole blocks
  float* scratch = nullptr; // [attention_scratch(tokens * group, head_dim)]

  int rows() const noexcept { return tokens * group; }
  int chunks() const noexcept { return (position + tokens - 1) / attention_chunk + 1; }
  // No query attends to any of chunk c. The first chunk counts as seen: results begin there.
  bool hides_chunk(int c) const noexcept {
    return c > 0 && c * attention_chunk >= window.sinks() && (c + 1) * attention_chunk <= window.hidden_end(position);
  }
};

// A partial row: weighted values [padded(head_dim)], the highest score, the sum of weights, and space up to whole registers.
constexpr std::size_t partial_row(int head_dim) noexcept {
  return static_cast<std::size_t>(padded(head_dim) + half_row_step);
}
constexpr std::size_t attention_scratch(int rows, int head_dim) noexcept {
  const auto r = static_cast<std::size_t>(rows);
  const auto d = static_cast<std::size_t>(padded(head_dim));
  return 2 * r * d + 2 * r * partial_row(head_dim) + r * (attention_block + half_row_step + 1) + limits::page_tokens * d;
}

// A token's row of a block. x [head_dim]; what is beyond head_dim in the row is written as zeros. NaN is read back as NaN, whatever
// the type, so that a spoilt sequence can be told.
struct kv_row_kernels {
  void (*store)(std::byte* block, int token, const float* x, int head_dim) noexcept;
  void (*load)(const std::byte* block, int token, float* x, int head_dim) noexcept;
};

struct vector_kernels {
  isa target;
  // x += y. [n]
  void (*add)(float* x, const float* y, int n) noexcept;
  // y = x / sqrt(mean(x^2) + epsilon) * weight. [n]; y may be x
  void (*rms_norm)(const float* x, const float* weight, float* y, int n, float epsilon) noexcept;
  // gate = silu(gate) * up. [n]
  void (*silu_multiply)(float* gate, const float* up, int n) noexcept;
  // Rotates a head in place. Pairs of halves: cosine, sine [dim / 2]; adjacent pairs: each cosine twice, each sine as (-s, s).
  // [dim]
  void (*rotate)(float* head, const float* cosine, const float* sine, int dim, bool adjacent) noexcept;
  kv_row_kernels rows[kv_type_count]; // by kv_type
  void (*attend)(const attention_task& task) noexcept;
  // Joins task.partial of chunks [0, chunks()) and writes task.out.
  void (*merge)(const attention_task& task) noexcept;

  const kv_row_kernels& rows_of(kv_type t) const noexcept { return rows[static_cast<int>(t)]; }
};

// Precondition: machine_has(target).
const vector_kernels& vector_kernels_for(isa target) noexcept;

// Compares every kernel with the plain one; about a millisecond. false: the isa must not be used here. Precondition:
// machine_has(target).
bool vector_self_test(isa target);

extern const vector_kernels plain_vector_kernels;
#if defined(__x86_64__)
extern const vector_kernels avx2_vector_kernels;
extern const vector_kernels avx512_vector_kernels;
#endif

} // namespace troupe::cpu
