// The forward pass of one step by the whole team: the same mathematics as model/forward.cpp, every token of the batch a row.
//
// Owns the scratch memory, sized once for the largest step. All threads run work() side by side and meet between phases; in a
// phase they take slices of output rows, tiles of attention or blocks of rows in turn. Which thread computes what never changes
// a value. In the last layer only rows whose next token is chosen go beyond their keys and values.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "cpu/attention_units.hpp"
#include "cpu/float_buffer.hpp"
#include "cpu/kv_store.hpp"
#include "cpu/packed_model.hpp"
#include "cpu/step_batch.hpp"
#include "cpu/thread_team.hpp"
#include "model/rope.hpp"

namespace troupe::cpu {

// Logits are computed for this many rows at once: more would cost memory (600 KB a row at 150k tokens), fewer would read the
// output matrix more often.
inline constexpr int logit_rows = 32;

// What becomes of logits. Both get the index within step_batch::sampled, behind them those within resumed.
struct logit_sink {
  std::function<void(int, std::span<const float>)> watch; // by one thread at a time, in order; may be empty
  std::function<void(int, std::span<float>)> choose;      // by any thread, different rows at the same time
};

class forward_step {
public:
  forward_step(const packed_model& model, kv_store& kv, thread_team& team, int rows_max);
  // Makes the scratch memory resident, which else grows into the largest step so far.
  void touch();

  // Writes keys and values of every row and hands the logits of the sampled rows and the resumed sequences to the sink.
  void run(const step_batch& batch, const logit_sink& sink);

  // What the logits of the last run's sampled row `index` were computed from: all that prompt_state has to keep.
  std::span<const float> hidden_of(int index) const {
    return {row(x_, batch_->sampled[static_cast<std::size_t>(index)], shape_.hidden), static_cast<std::size_t>(shape_.hidden)};
  }
  const rope_table& rope() const noexcept { return rope_; }
  // Of a sequence of the last run's batch.
  std::vector<float> scores_of(const batch_sequence& s) const { return all_units_.scores_of(s); }
  std::size_t state_bytes() const noexcept { return static_cast<std::size_t>(shape_.hidden) * sizeof(float); }

private:
  void work(int thread);
  void compute_layer(int thread, int layer);
  void compute_rows(int thread);
  void compute_logits();
  const float* hidden(int index) const; // of the sampled rows and, behind them, the resumed sequences

  // The residual stream's first value, and the rotation of the row's position.
  void embed(int row);
  void rotate_and_keep(int layer, int row);
  // Room for `count` input rows of the group, by one thread; then x [columns] becomes row `index`.
  void open_inputs(const matrix_group& group, int count);
  void prepare(const matrix_group& group, int index, const float* x);
  void multiply_slice(const matrix_slice& slice, float* y, std::ptrdiff_t y_stride);
  void multiply_group(const matrix_group& group, float* y, std::ptrdiff_t y_stride);
  void multiply_gate_up(const packed_layer& layer, int count);
  // A meeting of all threads: `before` by one of them, then fn(i) for every i in [0, count), whose effects all see on return.
  template <class Before, class F>
  void rows(int count, Before before, F fn);
  float* row(const float_buffer& buffer, int index, int width) const noexcept {
    return buffer.data() + static_cast<std::ptrdiff_t>(index) * width;
  }
  float* temporary(int thread) const noexcept { return row(temporary_, thread, temporary_width_); }

  const packed_model& model_;
  const hyperparameters& shape_;
  const vector_kernels& kernels_;
  kv_store& kv_;
  thread_team& team_;
  rope_table rope_;
  int temporary_width_;
  std::size_t attention_floats_;

  float_buffer x_;             // [row][hidden], the residual stream
  float_buffer qkv_;           // [row][q_width + 2 kv_width]
  float_buffer sink_q_;        // [row][q_width + 2 kv_width], queries as sinks see them; empty until a window is left
  float_buffer mixed_;         // [row][q_width]
  float_buffer gate_, up_;     // [row][ffn]
  float_buffer delta_;         // [row][hidden], what a block adds
  float_buffer cosine_, sine_; // [row][head_dim], as vector_kernels::rotate wants them
  float_buffer sink_cosine_, sink_sine_;
  float_buffer logits_;        // [logit_rows][vocabulary]
  float_buffer temporary_;     // [thread][hidden]
  float_buffer attention_;     // [thread][attention_floats_]
  prepared_rows inputs_[3];    // by row_kind
  attention_units all_units_, last_units_;
  std::vector<int> all_rows_; // 0, 1, 2, ...
  const step_batch* batch_ = nullptr;
  const logit_sink* sink_ = nullptr;
};

} // namespace troupe::cpu
