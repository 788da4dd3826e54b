// The specification: a plain float32 forward pass that a reader can check against the papers and that the backends are tested
// against. Slow on purpose: one thread, no intrinsics.
//
// Owns one sequence's keys and values as float vectors; borrows the weights, which must outlive it. Matrix rows are expanded to
// floats each time they are used (nothing is cached), so that it needs little memory whatever the weight type.
// Promises: a token's logits do not depend on how the tokens before it were cut into calls, to the bit.
// Limits: the position is bounded by memory alone. One thread at a time.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "base/ids.hpp"
#include "model/attention_window.hpp"
#include "model/rope.hpp"
#include "model/weights.hpp"

namespace troupe {

class reference_model {
public:
  // `window`: what tokens attend to where not to all before them.
  explicit reference_model(const model_weights& weights, attention_window window = {});

  // Computes `tokens` (at least one, each a row of the embedding) after everything fed before; returns the logits after the
  // last one. [vocabulary]
  std::vector<float> feed(std::span<const token_id> tokens);
  // The same, with the logits after every token. [tokens][vocabulary]
  std::vector<std::vector<float>> feed_all(std::span<const token_id> tokens);
  // Lets go of every position but those in `kept` (ascending); the i-th becomes position i, its keys turned to it.
  void keep(std::span<const int> kept);
  // Computes `tokens` as feed() does, for their attention alone. [layer][head][token][position up to its own]
  std::vector<std::vector<std::vector<std::vector<float>>>> feed_weights(std::span<const token_id> tokens);
  void reset();
  int position() const noexcept { return position_; }

private:
  using matrix = std::vector<std::vector<float>>; // [token][width]

  matrix hidden_states(std::span<const token_id> tokens); // after the last layer and norm; advances position_
  void attend(std::size_t layer, matrix& x);
  void feed_forward(std::size_t layer, matrix& x);
  void turn(std::span<float> head, int position, float magnitude) const;

  const model_weights& weights_;
  attention_window window_;
  rope_table rope_;
  int position_ = 0;
  std::vector<std::vector<float>> keys_;   // per layer: [position][kv_width], after RoPE
  std::vector<std::vector<float>> values_; // per layer: [position][kv_width]
  std::vector<std::vector<std::vector<std::vector<float>>>>* watch_ = nullptr; // what feed_weights() fills
};

} // namespace troupe
