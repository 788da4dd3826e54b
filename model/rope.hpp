// Rotary position embedding: the frequencies of every scaling kind, shared by the reference and the backends.
#pragma once
#include <vector>

#include "model/hyperparameters.hpp"

namespace troupe {

// Angle per position of pair i is position * frequencies[i]; cos and sin are multiplied by `magnitude` (YaRN; else 1).
struct rope_table {
  std::vector<float> frequencies; // [head_dim / 2]
  float magnitude = 1.0f;
};

rope_table make_rope_table(const rope_settings& rope, int head_dim);

} // namespace troupe
