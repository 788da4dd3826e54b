// The cosines and sines of one position as vector_kernels::rotate wants them. Plain functions; any thread.
#pragma once
#include <cmath>

#include "model/rope.hpp"

namespace troupe::cpu {

// cosine, sine [head_dim], both times `magnitude`. A negative position turns back.
inline void fill_rotation(const rope_table& rope, float magnitude, bool adjacent_pairs, int position, float* cosine, float* sine) {
  const auto pairs = static_cast<int>(rope.frequencies.size());
  for (int i = 0; i < pairs; ++i) {
    const float angle = static_cast<float>(position) * rope.frequencies[static_cast<std::size_t>(i)];
    const float c = std::cos(angle) * magnitude;
    const float s = std::sin(angle) * magnitude;
    if (adjacent_pairs) {
      cosine[2 * i] = cosine[2 * i + 1] = c;
      sine[2 * i] = -s;
      sine[2 * i + 1] = s;
    } else {
      cosine[i] = c;
      sine[i] = s;
    }
  }
}

} // namespace troupe::cpu
