// A Hugging Face folder as a model.
#pragma once
#include <filesystem>

#include "base/result.hpp"
#include "model/model_file.hpp"

namespace troupe {

// Reads config.json, model.safetensors or the shards of model.safetensors.index.json, tokenizer.json and, where present,
// tokenizer_config.json, chat_template.jinja and generation_config.json. Messages lack the folder, which open_model adds.
result<model_file> open_hf_folder(const std::filesystem::path& folder);

} // namespace troupe
