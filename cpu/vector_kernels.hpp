// The kernels that are not matrix products, one table an instruction set: normalisation, rotation, activation, attention.
//
// All are pure functions of their arguments and may run on any thread. Each sums in an order of its own that depends on the
// shapes alone. The templates behind them are elementwise_kernels.hpp and attention_kernels.hpp, over the operations of
// simd_*.hpp.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/ids.hpp"
#include "config/limits.hpp"
#include "cpu/isa.hpp"

namespace troupe::cpu {

// Halves are stored in rows of this many: the widest register's lanes.
inline constexpr int half_row_step = 16;
constexpr int padded(int count) noexcept {
  return (count + half_row_step - 1) / half_row_step * half_row_step;
}

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
  float scale = 1;                       // of the scores
  const std::uint16_t* keys = nullptr;   // halves; page p's block [page_tokens][padded(head_dim)] is at p * page_stride
  const std::uint16_t* values = nullptr; // likewise
  std::size_t page_stride = 0;
  const page_id* pages = nullptr;
  int chunk_begin = 0;
  int chunk_end = 0;
  float* out = nullptr; // [tokens][group][head_dim], rows out_stride apart; written where every chunk is computed here
  std::ptrdiff_t out_stride = 0;
  float* partial = nullptr; // else: [chunk][tokens * group][partial_row(head_dim)], the chunk's numbers, not normalised
  float* scratch = nullptr; // [attention_scratch(tokens * group, head_dim)]

  int rows() const noexcept { return tokens * group; }
  int chunks() const noexcept { return (position + tokens - 1) / attention_chunk + 1; }
};

// A partial row: weighted values [padded(head_dim)], the highest score, the sum of weights, and space up to whole registers.
constexpr std::size_t partial_row(int head_dim) noexcept {
  return static_cast<std::size_t>(padded(head_dim) + half_row_step);
}
constexpr std::size_t attention_scratch(int rows, int head_dim) noexcept {
  const auto r = static_cast<std::size_t>(rows);
  const auto d = static_cast<std::size_t>(padded(head_dim));
  return r * d + 2 * r * partial_row(head_dim) + r * (attention_block + half_row_step + 1) + limits::page_tokens * d;
}

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
  // n floats to halves; out [padded(n)], filled up with zeros.
  void (*store_half)(std::uint16_t* out, const float* x, int n) noexcept;
  void (*attend)(const attention_task& task) noexcept;
  // Joins task.partial of chunks [0, chunks()) and writes task.out.
  void (*merge)(const attention_task& task) noexcept;
};

// Precondition: machine_has(target).
const vector_kernels& vector_kernels_for(isa target) noexcept;

// Compares every kernel with the plain one; well under a millisecond. false: the isa must not be used here. Precondition:
// machine_has(target).
bool vector_self_test(isa target);

extern const vector_kernels plain_vector_kernels;
#if defined(__x86_64__)
extern const vector_kernels avx2_vector_kernels;
extern const vector_kernels avx512_vector_kernels;
#endif

} // namespace troupe::cpu
