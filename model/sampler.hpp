// Chooses a token from logits. A pure function of its arguments: the random draw is keyed by (params.seed, position), so a
// sequence's tokens do not depend on batch, load or restart.
#pragma once
#include <cstdint>
#include <span>

#include "base/sampling.hpp"

namespace troupe {

// Order: bias, penalties, (logprobs are taken here), temperature, top-k, min-p, top-p, draw. Logits are changed in place.
// `usable`: only ids below it can be chosen. `position`: index of the token being chosen within its sequence.
// A NaN or all -inf row is answered with token -1, which the caller reports as a failed sequence.
sampled_token sample(std::span<float> logits, int usable, const sampling_params& params,
                     std::span<const token_count> counts, std::uint64_t position);

} // namespace troupe
