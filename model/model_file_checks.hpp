// What every model file must satisfy whatever its format: relations between its numbers, a tokenizer that fits the embedding,
// sane sampling defaults. Pure functions, any thread. Messages are one line and name what is wrong; the caller adds the path.
#pragma once
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "model/model_file.hpp"

namespace troupe {

// Text of a file inside a message: quoted, at most 80 bytes, control bytes as '?'.
std::string in_quotes(std::string_view text);

// Ranges were checked where each number was read; this holds them against each other.
result<void> check_shape(const hyperparameters& shape);

// kinds as long as tokens, at most `vocabulary` of them, no id outside, merges well-formed.
result<void> check_tokenizer(const tokenizer_data& tokens, int vocabulary);

result<void> check_sampling(const sampling_params& sampling);

// Makes end_tokens the sorted set of: what it holds, eos, and the control tokens that are known to end a turn by their names.
// errc::model_format beyond limits::end_tokens_max.
result<void> complete_end_tokens(model_file& file);

} // namespace troupe
