#include "model/safetensors.hpp"

#include <algorithm>

#include "config/limits.hpp"
#include "model/hf_json.hpp"
#include "model/model_file_checks.hpp"
#include "model/weight_types_half.hpp"

namespace troupe {

namespace {

constexpr std::uint64_t prefix_bytes = 8; // the header's length
constexpr std::size_t dimensions_max = 8;

struct parsed {
  file_tensor tensor;
  std::string why; // not empty: what is wrong with it
  errc code = errc::model_format;
};

bool read_type(std::string_view name, weight_type& type) noexcept {
  if (name == "F32")
    type = weight_type::f32;
  else if (name == "F16")
    type = weight_type::f16;
  else if (name == "BF16")
    type = weight_type::bf16;
  else
    return false;
  return true;
}

// Shape and byte count out of "shape": [..]. An empty shape is a single number.
std::string read_extents(simdjson::dom::object entry, tensor_row& row) {
  simdjson::dom::array shape;
  if (entry.at_key("shape").get(shape))
    return "has no shape array";
  if (shape.size() > dimensions_max)
    return "has " + std::to_string(shape.size()) + " dimensions";
  row.bytes = static_cast<std::uint64_t>(info_of(row.type).block_bytes);
  for (const auto item : shape) {
    std::uint64_t extent = 0;
    if (item.get(extent) || extent > limits::model_file_bytes_max)
      return "has a dimension that is out of range";
    if (__builtin_mul_overflow(row.bytes, extent, &row.bytes))
      return "the product of its dimensions overflows";
    row.shape.push_back(static_cast<std::int64_t>(extent));
  }
  return "";
}

parsed read_entry(std::string_view name, simdjson::dom::element value, std::uint64_t data_offset,
                  std::span<const std::byte> file) {
  parsed out;
  tensor_row& row = out.tensor.row;
  row.name = std::string(name);
  simdjson::dom::object entry;
  std::string_view type;
  if (value.get(entry) || entry.at_key("dtype").get(type)) {
    out.why = "has no dtype";
    return out;
  }
  if (!read_type(type, row.type)) {
    out.why = "its type " + in_quotes(type) + " is not supported; F32, F16 and BF16 are";
    out.code = errc::unsupported;
    return out;
  }
  if (out.why = read_extents(entry, row); !out.why.empty())
    return out;
  simdjson::dom::array offsets;
  std::uint64_t begin = 0, end = 0;
  if (entry.at_key("data_offsets").get(offsets) || offsets.size() != 2 || offsets.at(0).get(begin) || offsets.at(1).get(end)) {
    out.why = "has no data_offsets of two numbers";
    return out;
  }
  const std::uint64_t data_bytes = file.size() - data_offset;
  if (begin > end || end > data_bytes)
    out.why = "data_offsets [" + std::to_string(begin) + ", " + std::to_string(end) + "] leave the data section of " +
              std::to_string(data_bytes) + " bytes";
  else if (end - begin != row.bytes)
    out.why = "data_offsets give " + std::to_string(end - begin) + " bytes, type and shape " + std::to_string(row.bytes);
  else if ((data_offset + begin) % 2 != 0)
    out.why = "its data stand at an odd address";
  row.offset = out.why.empty() ? data_offset + begin : data_offset;
  out.tensor.data = file.data() + row.offset;
  return out;
}

} // namespace

result<std::vector<file_tensor>> read_safetensors(std::span<const std::byte> file, const std::string& label) {
  const auto refuse = [&](std::uint64_t at, const std::string& what, errc code = errc::model_format) {
    return fail(code, label + ": " + what + " (byte " + std::to_string(at) + ")");
  };
  if (file.size() < prefix_bytes)
    return refuse(0, "header size: the file has only " + std::to_string(file.size()) + " bytes");
  const auto header_bytes = load<std::uint64_t>(file.data());
  if (header_bytes > limits::safetensors_header_bytes_max)
    return refuse(0, "header size: " + std::to_string(header_bytes) + " is over the limit of " +
                         std::to_string(limits::safetensors_header_bytes_max));
  if (header_bytes > file.size() - prefix_bytes)
    return refuse(0, "header size: " + std::to_string(header_bytes) + " bytes do not fit into the file of " +
                         std::to_string(file.size()));
  const std::uint64_t data_offset = prefix_bytes + header_bytes;
  auto header = json_document::parse(file.subspan(prefix_bytes, header_bytes), label + ": header at byte 8");
  if (!header)
    return header.fault();

  std::vector<file_tensor> out;
  for (const auto field : header->root()) {
    if (field.key == "__metadata__")
      continue;
    auto entry = read_entry(field.key, field.value, data_offset, file);
    if (!entry.why.empty())
      return refuse(data_offset, "tensor " + in_quotes(field.key) + ": " + entry.why, entry.code);
    out.push_back(std::move(entry.tensor));
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.row.offset < b.row.offset; });
  for (std::size_t i = 1; i < out.size(); ++i)
    if (out[i].row.offset - out[i - 1].row.offset < out[i - 1].row.bytes)
      return refuse(out[i].row.offset,
                    "tensor " + in_quotes(out[i].row.name) + ": its data overlap those of " + in_quotes(out[i - 1].row.name));
  return out;
}

} // namespace troupe
