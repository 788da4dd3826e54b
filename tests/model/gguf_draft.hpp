// A GGUF file that a test can bend before it is laid out: every count, type and offset can be made to lie. Encodes by itself,
// without the writer under test.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/weights.hpp"

namespace troupe::test {

struct gguf_draft {
  struct entry {
    std::string key;
    std::uint32_t type = 4;
    std::string payload; // as it stands in the file
  };
  struct tensor {
    std::string name;
    std::vector<std::uint64_t> extents; // innermost first, as the file has them
    std::uint32_t type = 0;
    std::uint64_t offset = 0;
    std::string data;
  };

  std::uint32_t version = 3;
  std::optional<std::uint64_t> tensor_count; // what the file says; otherwise the truth
  std::optional<std::uint64_t> entry_count;
  std::vector<entry> entries;
  std::vector<tensor> tensors;
  std::uint64_t alignment = 32;

  // Replace the key's value where it is there, else append it.
  void set(const std::string& key, std::uint32_t type, std::string payload);
  void set_u32(const std::string& key, std::uint32_t value);
  void set_f32(const std::string& key, float value);
  void set_bool(const std::string& key, unsigned char value);
  void set_text(const std::string& key, const std::string& value);
  void set_texts(const std::string& key, const std::vector<std::string>& values);
  void set_i32s(const std::string& key, const std::vector<std::int32_t>& values);
  void erase(const std::string& key);
  tensor& named(const std::string& name);
  void erase_tensor(const std::string& name);
  void place_tensors(); // gives each its offset, one after the other

  std::size_t header_bytes() const; // where the data section begins
  std::string bytes() const;
};

std::string packed_u32(std::uint32_t value);
std::string packed_u64(std::uint64_t value);
std::string packed_text(const std::string& text);

// A model of two layers with random weights whose matrices are of `type`. hidden 64, or 256 for the K types.
gguf_draft small_gguf(architecture arch = architecture::qwen3, weight_type type = weight_type::f32);

// `count` random weights in [-1, 1) as blocks of `type`, the same for the same key.
std::string random_blocks(weight_type type, std::int64_t count, std::uint64_t key);

} // namespace troupe::test
