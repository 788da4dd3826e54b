// How a step's attention is cut into units that threads take in turn: a tile of one sequence's tokens and one KV head each, and
// where there would be too few of them, one chunk of positions of such a tile. How it is cut never changes a value.
#pragma once
#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "cpu/float_buffer.hpp"
#include "cpu/kv_store.hpp"
#include "cpu/step_batch.hpp"
#include "cpu/vector_kernels.hpp"
#include "model/hyperparameters.hpp"

namespace troupe::cpu {

struct attention_rows {
  const float* q = nullptr; // [batch row][..., heads * head_dim first], rows q_stride apart
  std::ptrdiff_t q_stride = 0;
  const float* sink_q = nullptr; // likewise, turned as the sinks see it; where a sequence is turned
  float* out = nullptr; // [batch row][heads * head_dim]
};

class attention_units {
public:
  // Plans for all rows, or for the sampled ones alone.
  void plan(const step_batch& batch, const hyperparameters& shape, int threads, bool only_sampled);

  int count() const noexcept { return static_cast<int>(units_.size()); }
  // Before each layer, by one thread.
  void begin_layer() noexcept;
  // Computes unit u of `layer`. scratch [scratch_floats(shape)] belongs to the calling thread.
  void compute(int u, int layer, const attention_rows& rows, const kv_store& kv, const vector_kernels& kernels, float* scratch);

  // What the layers so far have scored of a sequence of the batch, a mean over them and the heads. Empty where not asked.
  std::vector<float> scores_of(const batch_sequence& sequence) const;

  static std::size_t scratch_floats(const hyperparameters& shape) noexcept;

private:
  struct unit {
    const batch_sequence* sequence;
    int first; // token within the sequence's step
    int tokens;
    int kv_head;
    int chunk_begin, chunk_end;
    int split; // index of the tile's shared partial results, or -1
    int score; // index in scored_, or -1: then the unit is all of the sequence's tiles, one after the other
    long cost;
  };
  // A head's scores of one layer, [head][stride], and behind them their sum over the layers so far.
  struct scored_sequence {
    const batch_sequence* sequence;
    int positions;
    std::ptrdiff_t stride;
    std::size_t at; // in scores_
  };
  struct split_tile {
    std::size_t partial; // where in partials_
    int chunks; // that are computed
  };

  void add_tile(const batch_sequence& s, int first, int tokens);
  void add_scored(const batch_sequence& s);
  void attend_scored(const unit& n, attention_task t, const vector_kernels& kernels);
  void split_long_tiles();
  attention_task task_of(const unit& n) const;

  const hyperparameters* shape_ = nullptr;
  std::vector<unit> units_;
  std::vector<split_tile> splits_;
  std::unique_ptr<std::atomic<int>[]> open_chunks_; // of each split tile in the present layer; who closes the last one merges
  std::size_t open_chunks_size_ = 0;
  float_buffer partials_;
  std::vector<scored_sequence> scored_;
  std::size_t scores_size_ = 0;
  float_buffer scores_;
  int layers_ = 0; // begun
};

} // namespace troupe::cpu
