// Chooses a token from logits. A pure function of its arguments: the random draw is keyed by (params.seed, position), so a
// sequence's tokens do not depend on batch, load or restart.
//
// Promises: the same arguments give the same token; ties go to the lowest id; sums are in double and in a fixed order. The
// vocabulary is never sorted: with top-k on (or greedy) it is read once, else an exponential is taken of every logit as well.
// Limits: params as the settings allow them; a temperature below 1e-5 is greedy, one above 1e6 is 1e6. Any thread.
#pragma once
#include <cstdint>
#include <span>

#include "base/sampling.hpp"

namespace troupe {

// Order: bias, penalties, (logprobs are taken here), temperature, top-k, min-p, top-p, draw. Logits are changed in place.
// `usable`: only ids below it can be chosen. `position`: index of the token being chosen within its sequence.
// Top-k and top-p keep at least one token; top-p keeps the fewest best ones whose renormalised mass reaches top_p; min-p keeps
// those with at least min_p times the best one's probability.
// A row with a NaN or +inf, or with nothing above -inf, is answered with token -1, which the caller reports as a failed sequence.
sampled_token sample(std::span<float> logits, int usable, const sampling_params& params,
                     std::span<const token_count> counts, std::uint64_t position);

} // namespace troupe
