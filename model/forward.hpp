// The specification: a plain float32 forward pass that a reader can check against the papers and the other backends are
// tested against. One sequence, KV kept as float vectors, no threads, no intrinsics. Slow on purpose.
#pragma once
#include <span>
#include <vector>

#include "base/ids.hpp"
#include "model/weights.hpp"

namespace troupe {

class reference_model {
public:
  explicit reference_model(const model_weights& weights);

  // Computes `tokens` after everything fed before; returns the logits after the last one. [vocabulary]
  std::vector<float> feed(std::span<const token_id> tokens);
  void reset();
  int position() const noexcept { return position_; }

private:
  std::vector<float> feed_one(token_id token);

  const model_weights& weights_;
  int position_ = 0;
  std::vector<std::vector<float>> keys_;   // per layer: [position][kv_width], after RoPE
  std::vector<std::vector<float>> values_; // per layer: [position][kv_width]
};

} // namespace troupe
