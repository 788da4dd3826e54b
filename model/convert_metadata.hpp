// The metadata that convert_to_gguf writes: the inverse of what gguf_model.hpp reads.
#pragma once
#include <optional>

#include "base/result.hpp"
#include "model/gguf_writer.hpp"
#include "model/model_file.hpp"

namespace troupe {

// errc::unsupported for a RoPE scaling that GGUF cannot say for the architecture.
result<void> add_gguf_metadata(const model_file& model, std::optional<weight_type> type, gguf_writer& out);

// The divisors that Llama 3.1's scaling comes to, as rope_freqs.weight holds them; empty for other models without any.
std::vector<float> gguf_rope_divisors(const hyperparameters& shape);

} // namespace troupe
