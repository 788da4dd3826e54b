// Tokenizers of files beside the repository, for tests that need a real vocabulary.
#pragma once
#include <filesystem>
#include <memory>

#include "model/tokenizer.hpp"

namespace troupe::testing {

// Built from a tokenizer.json, once a process; null where the file is absent (a reason is printed once). Throws
// std::runtime_error where it is refused.
std::shared_ptr<const tokenizer> tokenizer_of(const std::filesystem::path& file);

// Where the files beside the repository lie. Tests that need one skip without it.
std::filesystem::path shared_folder();
std::shared_ptr<const tokenizer> qwen3_tokenizer();
std::shared_ptr<const tokenizer> tiny_tokenizer();

} // namespace troupe::testing
