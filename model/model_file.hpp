// Opens a model: a GGUF v3 file, or a Hugging Face folder (config.json, safetensors single or sharded, tokenizer.json,
// tokenizer_config.json, generation_config.json). The file is untrusted: every count, offset, size and type is checked with
// overflow-safe arithmetic before use, and a lying file gets errc::model_format with the field and the byte offset.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/sampling.hpp"
#include "model/tokenizer_data.hpp"
#include "model/weights.hpp"

namespace troupe {

// One row of `troupe inspect`.
struct tensor_row {
  std::string name;
  weight_type type;
  std::vector<std::int64_t> shape; // outermost first
  std::uint64_t offset = 0;        // in its file
  std::uint64_t bytes = 0;
};

struct model_file {
  model_weights weights;
  tokenizer_data tokenizer;
  std::string chat_template;              // Jinja text from the file; empty where it has none
  std::vector<token_id> end_tokens;       // every id that ends an answer
  sampling_params sampling;               // the file's generation defaults (generation_config.json, general.sampling.*)
  bool has_sampling = false;              // whether the file said anything
  std::vector<tensor_row> table;          // in file order
  std::vector<std::pair<std::string, std::string>> metadata; // key, value as text (arrays abridged), for inspect
  std::string format;                     // "GGUF v3" or "safetensors"
};

result<model_file> open_model(const std::filesystem::path& path);

} // namespace troupe
