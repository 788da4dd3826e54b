// config.json and generation_config.json of a Hugging Face folder. Failures are recorded in the readers, which name file and
// field. Pure functions, any thread.
#pragma once
#include <optional>
#include <vector>

#include "base/ids.hpp"
#include "base/sampling.hpp"
#include "model/hf_json.hpp"
#include "model/hyperparameters.hpp"

namespace troupe {

// All but name, vocabulary, qk_norm and qkv_bias, which the folder and its tensors tell.
hyperparameters hf_hyperparameters(hf_fields& config);

// "key": 5, [5, 6] or null.
std::vector<token_id> hf_token_ids(hf_fields& fields, std::string_view key);

// Greedy where do_sample is false. `present` tells whether the file said anything.
sampling_params hf_sampling(hf_fields& generation, bool& present);

} // namespace troupe
