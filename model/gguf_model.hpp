// A GGUF file as a model: hyperparameters, weights, tokenizer, template and sampling defaults out of its keys and tensors.
#pragma once
#include <memory>
#include <span>
#include <string>

#include "base/result.hpp"
#include "model/gguf_fields.hpp"
#include "model/model_file.hpp"

namespace troupe {

// `file` are a GGUF file's bytes, kept alive by `storage`; `name` is the model's where the file gives none. Messages lack the
// path, which open_model adds.
result<model_file> open_gguf(std::span<const std::byte> file, std::shared_ptr<const void> storage, const std::string& name);

// Parts of it, each tested alone. They record failures in `fields`.
hyperparameters gguf_hyperparameters(gguf_fields& fields);
tokenizer_data gguf_tokenizer(gguf_fields& fields);
sampling_params gguf_sampling(gguf_fields& fields, bool& present);

// The value of tokenizer.ggml.pre that stands for `pre`.
std::string_view gguf_name_of(pre_tokenizer pre) noexcept;

} // namespace troupe
