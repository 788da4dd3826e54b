#include "model/gguf_reader.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <unordered_set>

#include "config/limits.hpp"
#include "model/gguf_cursor.hpp"
#include "model/model_file_checks.hpp"

namespace troupe {

namespace {

constexpr std::uint64_t tensor_name_bytes_max = 64; // the format's
constexpr std::uint64_t alignment_max = 1u << 20;
// The least that an entry takes, so that a lying count is refused before memory is set aside for it.
constexpr std::uint64_t entry_bytes_min = 8 + 1 + 4 + 1;
constexpr std::uint64_t tensor_bytes_min = 8 + 1 + 4 + 8 + 4 + 8;

struct numbered_type {
  std::uint32_t number;
  weight_type type;
};
constexpr std::array<numbered_type, 11> numbered_types{{
    {0, weight_type::f32},
    {1, weight_type::f16},
    {2, weight_type::q4_0},
    {3, weight_type::q4_1},
    {6, weight_type::q5_0},
    {7, weight_type::q5_1},
    {8, weight_type::q8_0},
    {12, weight_type::q4_k},
    {13, weight_type::q5_k},
    {14, weight_type::q6_k},
    {30, weight_type::bf16},
}};

bool known(gguf_type type) noexcept {
  return type <= gguf_type::f64;
}

std::string number(gguf_type type) {
  return std::to_string(static_cast<std::uint32_t>(type));
}

void take_number(gguf_cursor& in, gguf_value& value, const std::string& field) {
  value.offset = in.position();
  value.bytes = in.take_bytes(gguf_width_of(value.type), field);
  if (value.type == gguf_type::boolean && !value.bytes.empty() && std::to_integer<int>(value.bytes[0]) > 1)
    in.fail_at(value.offset, field, "a boolean is neither 0 nor 1");
}

void take_array(gguf_cursor& in, gguf_value& value, const std::string& field) {
  const std::uint64_t type_at = in.position();
  value.element = static_cast<gguf_type>(in.take<std::uint32_t>(field + " element type"));
  if (!known(value.element) || value.element == gguf_type::array)
    in.fail_at(type_at, field + " element type", number(value.element) + " is not a type that an array can hold");
  const std::uint64_t count_at = in.position();
  value.count = in.take<std::uint64_t>(field + " count");
  if (value.count > limits::gguf_array_items_max)
    in.fail_at(count_at, field + " count",
               std::to_string(value.count) + " is over the limit of " + std::to_string(limits::gguf_array_items_max));
  if (in.failed())
    return;
  value.offset = in.position();
  if (value.element == gguf_type::string) {
    for (std::uint64_t i = 0; i < value.count && !in.failed(); ++i)
      in.take_text(field, limits::gguf_string_bytes_max);
    value.bytes = in.since(value.offset);
  } else {
    value.bytes = in.take_bytes(value.count * gguf_width_of(value.element), field); // at most 2^24 * 8
  }
}

void take_entry(gguf_cursor& in, gguf_contents& out, std::uint64_t i) {
  const std::uint64_t key_at = in.position();
  const auto key = in.take_text("key " + std::to_string(i), limits::gguf_string_bytes_max);
  if (!in.failed() && key.empty())
    in.fail_at(key_at, "key " + std::to_string(i), "is empty");
  if (in.failed())
    return;
  const std::string field = "value of " + in_quotes(key);
  const std::uint64_t type_at = in.position();
  gguf_value value;
  value.type = static_cast<gguf_type>(in.take<std::uint32_t>("type of " + in_quotes(key)));
  if (!known(value.type))
    in.fail_at(type_at, "type of " + in_quotes(key), number(value.type) + " is no GGUF value type");
  if (in.failed())
    return;
  if (value.type == gguf_type::array) {
    take_array(in, value, field);
  } else if (value.type == gguf_type::string) {
    const auto text = in.take_text(field, limits::gguf_string_bytes_max);
    value.bytes = std::as_bytes(std::span(text.data(), text.size()));
    value.offset = in.position() - text.size();
  } else {
    take_number(in, value, field);
  }
  if (!out.index.emplace(key, out.entries.size()).second)
    in.fail_at(key_at, "key " + in_quotes(key), "stands twice");
  out.entries.emplace_back(key, value);
}

// Shape, type and size of one tensor; its place is checked once the data section's start is known.
void take_tensor(gguf_cursor& in, gguf_contents& out, std::uint64_t i) {
  const std::uint64_t name_at = in.position();
  gguf_tensor tensor;
  tensor.name = in.take_text("name of tensor " + std::to_string(i), tensor_name_bytes_max);
  if (!in.failed() && tensor.name.empty())
    in.fail_at(name_at, "name of tensor " + std::to_string(i), "is empty");
  if (in.failed())
    return;
  const std::string name = in_quotes(tensor.name);
  const std::uint64_t dimensions_at = in.position();
  const auto dimensions = in.take<std::uint32_t>("dimension count of " + name);
  if (!in.failed() && (dimensions < 1 || dimensions > 4))
    in.fail_at(dimensions_at, "dimension count of " + name, std::to_string(dimensions) + " is outside 1..4");
  if (in.failed())
    return;
  std::uint64_t rows = 1, columns = 0;
  for (std::uint32_t d = 0; d < dimensions; ++d) {
    const std::uint64_t at = in.position();
    const auto extent = in.take<std::uint64_t>("dimension " + std::to_string(d) + " of " + name);
    if (extent == 0 || extent > limits::model_file_bytes_max)
      in.fail_at(at, "dimension " + std::to_string(d) + " of " + name, std::to_string(extent) + " is out of range");
    if (d == 0)
      columns = extent;
    else if (__builtin_mul_overflow(rows, extent, &rows))
      in.fail_at(at, "dimensions of " + name, "their product overflows");
    tensor.shape.insert(tensor.shape.begin(), static_cast<std::int64_t>(extent));
  }
  const std::uint64_t type_at = in.position();
  const auto type_number = in.take<std::uint32_t>("type of " + name);
  const auto type = weight_type_numbered(type_number);
  if (!type)
    in.fail_at(type_at, "type of " + name, "tensor type " + std::to_string(type_number) + " is not supported",
               errc::unsupported);
  tensor.offset = in.take<std::uint64_t>("offset of " + name);
  if (in.failed())
    return;
  tensor.type = *type;
  const auto& info = info_of(*type);
  if (columns % static_cast<std::uint64_t>(info.block_weights) != 0)
    in.fail_at(dimensions_at, "row length of " + name,
               std::to_string(columns) + " is not a whole number of " + std::string(info.name) + " blocks of " +
                   std::to_string(info.block_weights));
  const std::uint64_t row_blocks = columns / static_cast<std::uint64_t>(info.block_weights);
  if (__builtin_mul_overflow(row_blocks, static_cast<std::uint64_t>(info.block_bytes), &tensor.bytes) ||
      __builtin_mul_overflow(tensor.bytes, rows, &tensor.bytes))
    in.fail_at(dimensions_at, "dimensions of " + name, "their product overflows");
  out.tensors.push_back(std::move(tensor));
}

void take_alignment(gguf_cursor& in, gguf_contents& out) {
  const gguf_value* value = out.find("general.alignment");
  if (in.failed() || value == nullptr)
    return;
  if (value->type != gguf_type::u32)
    return in.fail_at(value->offset, "general.alignment", "is not an unsigned 32-bit number");
  out.alignment = load<std::uint32_t>(value->bytes.data());
  if (out.alignment == 0 || out.alignment % 8 != 0 || out.alignment > alignment_max)
    in.fail_at(value->offset, "general.alignment", std::to_string(out.alignment) + " is not a multiple of 8 up to 2^20");
}

// Turns offsets within the data section into offsets in the file, and holds each tensor inside it and clear of the others.
void place_tensors(gguf_cursor& in, gguf_contents& out, std::uint64_t file_bytes) {
  const std::uint64_t infos_end = in.position();
  out.data_offset = (infos_end + out.alignment - 1) / out.alignment * out.alignment;
  if (!out.tensors.empty() && out.data_offset > file_bytes)
    return in.fail_at(infos_end, "padding before the data section", "the file ends");
  const std::uint64_t data_bytes = out.tensors.empty() ? 0 : file_bytes - out.data_offset;
  std::vector<const gguf_tensor*> by_offset;
  std::unordered_set<std::string_view> names;
  for (auto& tensor : out.tensors) {
    const std::string name = in_quotes(tensor.name);
    if (!names.insert(tensor.name).second)
      return in.fail_at(out.data_offset, "tensor " + name, "stands twice");
    if (tensor.offset % out.alignment != 0)
      return in.fail_at(out.data_offset, "offset of " + name,
                        std::to_string(tensor.offset) + " is not a multiple of " + std::to_string(out.alignment));
    if (tensor.offset > data_bytes || tensor.bytes > data_bytes - tensor.offset)
      return in.fail_at(out.data_offset, "data of " + name,
                        std::to_string(tensor.bytes) + " bytes from offset " + std::to_string(tensor.offset) +
                            " leave the data section of " + std::to_string(data_bytes) + " bytes");
    tensor.offset += out.data_offset;
    by_offset.push_back(&tensor);
  }
  std::sort(by_offset.begin(), by_offset.end(), [](const auto* a, const auto* b) { return a->offset < b->offset; });
  for (std::size_t i = 1; i < by_offset.size(); ++i)
    if (by_offset[i]->offset - by_offset[i - 1]->offset < by_offset[i - 1]->bytes)
      return in.fail_at(by_offset[i]->offset, "data of " + in_quotes(by_offset[i]->name),
                        "overlaps that of " + in_quotes(by_offset[i - 1]->name));
}

std::uint64_t take_count(gguf_cursor& in, std::string_view field, std::uint64_t count_max, std::uint64_t bytes_min) {
  const std::uint64_t at = in.position();
  const auto count = in.take<std::uint64_t>(field);
  if (count > count_max)
    in.fail_at(at, field, std::to_string(count) + " is over the limit of " + std::to_string(count_max));
  else if (count > in.left() / bytes_min)
    in.fail_at(at, field, std::to_string(count) + " do not fit into the file");
  return count;
}

} // namespace

std::uint32_t gguf_number_of(weight_type type) noexcept {
  for (const auto& row : numbered_types)
    if (row.type == type)
      return row.number;
  return 0;
}

std::optional<weight_type> weight_type_numbered(std::uint32_t number) noexcept {
  for (const auto& row : numbered_types)
    if (row.number == number)
      return row.type;
  return std::nullopt;
}

std::size_t gguf_width_of(gguf_type type) noexcept {
  switch (type) {
  case gguf_type::u8:
  case gguf_type::i8:
  case gguf_type::boolean: return 1;
  case gguf_type::u16:
  case gguf_type::i16: return 2;
  case gguf_type::u32:
  case gguf_type::i32:
  case gguf_type::f32: return 4;
  case gguf_type::u64:
  case gguf_type::i64:
  case gguf_type::f64: return 8;
  case gguf_type::string:
  case gguf_type::array: return 0;
  }
  return 0;
}

result<gguf_contents> read_gguf(std::span<const std::byte> file) {
  gguf_cursor in(file);
  gguf_contents out;
  const auto magic = in.take_bytes(4, "magic");
  if (!in.failed() && std::memcmp(magic.data(), "GGUF", 4) != 0)
    in.fail_at(0, "magic", "is not GGUF");
  out.version = in.take<std::uint32_t>("version");
  if (out.version == 0x03000000u)
    in.fail_at(4, "version", "the file is big-endian", errc::unsupported);
  else if (out.version != 3)
    in.fail_at(4, "version", std::to_string(out.version) + " is not supported, only 3 is", errc::unsupported);
  const std::uint64_t tensors = take_count(in, "tensor count", limits::gguf_tensor_count_max, tensor_bytes_min);
  const std::uint64_t entries = take_count(in, "metadata count", limits::gguf_kv_count_max, entry_bytes_min);
  for (std::uint64_t i = 0; i < entries && !in.failed(); ++i)
    take_entry(in, out, i);
  take_alignment(in, out);
  for (std::uint64_t i = 0; i < tensors && !in.failed(); ++i)
    take_tensor(in, out, i);
  if (!in.failed())
    place_tensors(in, out, file.size());
  if (in.failed())
    return in.fault();
  return out;
}

} // namespace troupe
