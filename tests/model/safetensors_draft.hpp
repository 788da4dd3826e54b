// A Hugging Face folder that a test can bend before it is written.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "model/weights.hpp"

namespace troupe::test {

struct safetensors_draft {
  struct tensor {
    std::string name;
    std::string type; // "F32"
    std::vector<std::int64_t> shape;
    std::string data;
  };
  std::vector<tensor> tensors;

  // The header's JSON, offsets as the data lie.
  std::string header() const;
  std::string bytes() const { return bytes_with(header()); }
  // The same data behind another header.
  std::string bytes_with(const std::string& header) const;
  tensor& named(const std::string& name);
};

struct hf_draft {
  std::map<std::string, std::string> files; // text files by name
  safetensors_draft weights;

  // Replaces the one place where `from` stands in a file; fails the test's own check where it is not there.
  void edit(const std::string& file, const std::string& from, const std::string& to);
  void write(const std::filesystem::path& folder) const;
};

// Two layers, random weights, hidden 64, vocabulary 12 rows.
hf_draft small_hf(architecture arch = architecture::qwen3, weight_type type = weight_type::f32);

} // namespace troupe::test
