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

  static std::size_t scratch_floats(const hyperparameters& shape) noexcept;

private:
  struct unit {
    const batch_sequence* sequence;
    int first; // token within the sequence's step
    int tokens;
    int kv_head;
    int chunk_begin, chunk_end;
    int split; // index of the tile's shared partial results, or -1
    long cost;
  };
  struct split_tile {
    std::size_t partial; // where in partials_
    int chunks; // that are computed
  };

  void add_tile(const batch_sequence& s, int first, int tokens);
  void split_long_tiles();
  attention_task task_of(const unit& n) const;

  const hyperparameters* shape_ = nullptr;
  std::vector<unit> units_;
  std::vector<split_tile> splits_;
  std::unique_ptr<std::atomic<int>[]> open_chunks_; // of each split tile in the present layer; who closes the last one merges
  std::size_t open_chunks_size_ = 0;
  float_buffer partials_;
};

} // namespace troupe::cpu
