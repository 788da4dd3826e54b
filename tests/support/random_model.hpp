// Small models with weights from a formula, for tests of the forward pass: no file, no quantiser.
//
// The bytes of every block come from the seed by integer arithmetic alone, so that tests/golden/logits_make.py builds the very
// same weights with numpy and computes the expected logits without any code of ours. Scales are valid f16 of such a size that
// weights have a spread of about 1/16; quants are any bits.
//
// word(key, i) = mix64(key + i); a tensor's key is mix64(seed * 4096 + its number). Block b takes word 64 b for its scales and
// the words after it, little-endian, for the rest of its bytes. See random_model.cpp for the layout of the scale bits.
#pragma once
#include <cstdint>
#include <vector>

#include "base/ids.hpp"
#include "model/weights.hpp"

namespace troupe::tests {

// hidden, ffn and heads * head_dim are multiples of 256 (the largest block).
struct random_model_sizes {
  int layers = 2;
  int hidden = 256;
  int heads = 4;
  int kv_heads = 2;
  int head_dim = 64;
  int ffn = 512;
  int vocabulary = 320;
  bool tied_output = false;
  rope_settings rope;
};

struct random_model {
  model_weights weights; // weights.storage owns the bytes
};

// Matrices are of `type`; norms and biases are f32, as in GGUF files.
random_model make_random_model(architecture arch, weight_type type, std::uint64_t seed, const random_model_sizes& sizes = {});

// A prompt from the same formula. [count], each below vocabulary
std::vector<token_id> random_tokens(std::uint64_t seed, int count, int vocabulary);

} // namespace troupe::tests
