// Writes any model that opens as one GGUF v3 file, in the conventions that other programs expect: llama's q and k rows permuted
// for adjacent RoPE pairs, norms and biases as F32, tokenizer, chat template and sampling defaults in the metadata.
//
// Promises: `to` either stays as it was or becomes the whole new file (a temporary file beside it is renamed at the end; a
// failure removes it). Memory: a few rows, whatever the model's size. Runs on the calling thread.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include "base/result.hpp"
#include "model/weights.hpp"

namespace troupe {

// Bytes of weights written so far, and in all.
using convert_progress = std::function<void(std::uint64_t done, std::uint64_t total)>;

// `type`: of the matrices; nothing keeps each matrix as it is. A matrix whose row length is no whole number of blocks takes the
// next finer type that fits; embedding and output never take fewer than 6 bits.
result<void> convert_to_gguf(const std::filesystem::path& from, const std::filesystem::path& to,
                             std::optional<weight_type> type, const convert_progress& progress = {});

} // namespace troupe
