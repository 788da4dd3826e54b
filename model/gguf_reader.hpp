// The GGUF v3 container: what stands where. Knows keys, values and tensors as the format has them, nothing of language models.
//
// Promises: every count, length, offset, type and dimension was checked against the file's real size before use, so each span
// here lies inside the file; keys and tensor names are unique; tensors are whole blocks, aligned, in the file and disjoint.
// A file that breaks any of this gets errc::model_format (errc::unsupported for a type that we do not read) and a line that
// names the field and its byte offset. Views point into the bytes given, which must outlive them. Any thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "model/weights.hpp"

namespace troupe {

// The numbers are the format's.
enum class gguf_type : std::uint32_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12,
};

struct gguf_value {
  gguf_type type = gguf_type::u8;
  gguf_type element = gguf_type::u8; // of an array; never an array itself
  std::uint64_t count = 1;           // elements of an array
  std::span<const std::byte> bytes;  // a number, a string's text, or an array's elements (strings: u64 length before each)
  std::uint64_t offset = 0;          // of `bytes` in the file
};

struct gguf_tensor {
  std::string_view name;
  weight_type type = weight_type::f32;
  std::vector<std::int64_t> shape; // outermost first; 1 to 4 dimensions
  std::uint64_t offset = 0;        // in the file
  std::uint64_t bytes = 0;
};

struct gguf_contents {
  std::uint32_t version = 0;
  std::uint64_t alignment = 32;
  std::uint64_t data_offset = 0;
  std::vector<std::pair<std::string_view, gguf_value>> entries; // in file order
  std::vector<gguf_tensor> tensors;                             // in file order
  std::unordered_map<std::string_view, std::size_t> index;      // key to position in `entries`

  const gguf_value* find(std::string_view key) const {
    const auto at = index.find(key);
    return at == index.end() ? nullptr : &entries[at->second].second;
  }
};

result<gguf_contents> read_gguf(std::span<const std::byte> file);

// GGML's number of a tensor type, both ways.
std::uint32_t gguf_number_of(weight_type type) noexcept;
std::optional<weight_type> weight_type_numbered(std::uint32_t number) noexcept;

// Bytes of one number or boolean; 0 for strings and arrays.
std::size_t gguf_width_of(gguf_type type) noexcept;

} // namespace troupe
