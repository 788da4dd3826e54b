// Lays out a GGUF v3 file: collects metadata and tensor infos, then gives the header's bytes and each tensor's place. Whoever
// uses it writes the data. Keys and tensor names must be unique and row lengths whole blocks: checked, as they are our own. One
// thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/gguf_reader.hpp"

namespace troupe {

class gguf_writer {
public:
  static constexpr std::uint64_t alignment = 32;

  void add_u32(std::string_view key, std::uint32_t value);
  void add_f32(std::string_view key, float value);
  void add_bool(std::string_view key, bool value);
  void add_text(std::string_view key, std::string_view value);
  void add_texts(std::string_view key, const std::vector<std::string>& values);
  void add_i32s(std::string_view key, const std::vector<std::int32_t>& values);

  // `shape` outermost first. Returns the tensor's number.
  std::size_t add_tensor(std::string_view name, weight_type type, const std::vector<std::int64_t>& shape);

  // Everything before the data section, padded to it. Valid once all is added.
  std::vector<std::byte> header() const;
  std::uint64_t offset_of(std::size_t tensor) const { return tensors_.at(tensor).offset; } // within the data section
  std::uint64_t bytes_of(std::size_t tensor) const { return tensors_.at(tensor).bytes; }
  std::uint64_t data_bytes() const noexcept { return data_bytes_; } // a multiple of the alignment

private:
  struct tensor_info {
    std::string name;
    weight_type type;
    std::vector<std::int64_t> shape;
    std::uint64_t offset;
    std::uint64_t bytes;
  };
  void add_key(std::string_view key, gguf_type type);

  std::vector<std::byte> entries_;
  std::uint64_t entry_count_ = 0;
  std::vector<tensor_info> tensors_;
  std::uint64_t data_bytes_ = 0;
};

} // namespace troupe
