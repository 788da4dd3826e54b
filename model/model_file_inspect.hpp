// What `troupe inspect` prints: a model's table for people. Pure function, any thread.
#pragma once
#include <string>

#include "model/model_file.hpp"

namespace troupe {

// Summary, bytes by type, tokenizer and template, tensors, metadata. Ends with a newline; lines are not wrapped.
std::string inspect_text(const model_file& file);

// Weights of all tensors in the table.
std::uint64_t parameters_of(const model_file& file) noexcept;

} // namespace troupe
