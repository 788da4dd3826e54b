// Rotary position embedding (Su et al. 2021): the frequencies of every scaling kind, shared by the reference and the backends.
//
// Promises: the same table for the same settings; frequencies are computed in double and rounded once. Any thread.
// Limits: head_dim is even. Settings are taken as read from the file; the model reader has checked their ranges.
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
