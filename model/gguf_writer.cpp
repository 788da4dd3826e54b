#include "model/gguf_writer.hpp"

#include "base/check.hpp"

namespace troupe {

namespace {

// Out of line: GCC 12 sees overflows that are not there when vector's growth is inlined for small constant sizes.
[[gnu::noinline]] void append(std::vector<std::byte>& out, const void* bytes, std::size_t count) {
  const auto* from = static_cast<const std::byte*>(bytes);
  out.insert(out.end(), from, from + count);
}

template <class T>
void put(std::vector<std::byte>& out, T value) {
  append(out, &value, sizeof value);
}

void put_text(std::vector<std::byte>& out, std::string_view text) {
  put(out, static_cast<std::uint64_t>(text.size()));
  append(out, text.data(), text.size());
}

std::uint64_t aligned(std::uint64_t offset) noexcept {
  return (offset + gguf_writer::alignment - 1) / gguf_writer::alignment * gguf_writer::alignment;
}

} // namespace

void gguf_writer::add_key(std::string_view key, gguf_type type) {
  put_text(entries_, key);
  put(entries_, static_cast<std::uint32_t>(type));
  ++entry_count_;
}

void gguf_writer::add_u32(std::string_view key, std::uint32_t value) {
  add_key(key, gguf_type::u32);
  put(entries_, value);
}

void gguf_writer::add_f32(std::string_view key, float value) {
  add_key(key, gguf_type::f32);
  put(entries_, value);
}

void gguf_writer::add_bool(std::string_view key, bool value) {
  add_key(key, gguf_type::boolean);
  put(entries_, static_cast<std::uint8_t>(value));
}

void gguf_writer::add_text(std::string_view key, std::string_view value) {
  add_key(key, gguf_type::string);
  put_text(entries_, value);
}

void gguf_writer::add_texts(std::string_view key, const std::vector<std::string>& values) {
  add_key(key, gguf_type::array);
  put(entries_, static_cast<std::uint32_t>(gguf_type::string));
  put(entries_, static_cast<std::uint64_t>(values.size()));
  for (const auto& value : values)
    put_text(entries_, value);
}

void gguf_writer::add_i32s(std::string_view key, const std::vector<std::int32_t>& values) {
  add_key(key, gguf_type::array);
  put(entries_, static_cast<std::uint32_t>(gguf_type::i32));
  put(entries_, static_cast<std::uint64_t>(values.size()));
  for (const auto value : values)
    put(entries_, value);
}

std::size_t gguf_writer::add_tensor(std::string_view name, weight_type type, const std::vector<std::int64_t>& shape) {
  TROUPE_CHECK(!shape.empty() && shape.size() <= 4);
  const auto& info = info_of(type);
  TROUPE_CHECK(shape.back() > 0 && shape.back() % info.block_weights == 0);
  auto bytes = static_cast<std::uint64_t>(shape.back() / info.block_weights * info.block_bytes);
  for (std::size_t d = 0; d + 1 < shape.size(); ++d)
    bytes *= static_cast<std::uint64_t>(shape[d]);
  tensors_.push_back({std::string(name), type, shape, data_bytes_, bytes});
  data_bytes_ = aligned(data_bytes_ + bytes);
  return tensors_.size() - 1;
}

std::vector<std::byte> gguf_writer::header() const {
  std::vector<std::byte> out;
  out.reserve(entries_.size() + 4096);
  put(out, std::uint32_t{0x46554747}); // "GGUF"
  put(out, std::uint32_t{3});
  put(out, static_cast<std::uint64_t>(tensors_.size()));
  put(out, entry_count_);
  out.insert(out.end(), entries_.begin(), entries_.end());
  for (const auto& tensor : tensors_) {
    put_text(out, tensor.name);
    put(out, static_cast<std::uint32_t>(tensor.shape.size()));
    for (auto extent = tensor.shape.rbegin(); extent != tensor.shape.rend(); ++extent)
      put(out, static_cast<std::uint64_t>(*extent));
    put(out, gguf_number_of(tensor.type));
    put(out, tensor.offset);
  }
  out.resize(aligned(out.size()));
  return out;
}

} // namespace troupe
