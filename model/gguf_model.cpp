#include "model/gguf_model.hpp"

#include "config/limits.hpp"
#include "model/model_file_checks.hpp"
#include "model/model_file_tensors.hpp"
#include "model/weight_types.hpp"

namespace troupe {

namespace {

// rope_freqs.weight: a divisor for each of head_dim / 2 frequencies.
result<void> read_divisors(file_tensors& tensors, hyperparameters& shape) {
  constexpr std::string_view name = "rope_freqs.weight";
  const file_tensor* tensor = tensors.find(name);
  if (tensor == nullptr)
    return {};
  const auto complain = [&](const std::string& why) {
    return fail(errc::model_format,
                "tensor " + in_quotes(name) + " at byte " + std::to_string(tensor->row.offset) + ": " + why);
  };
  if (tensor->row.type != weight_type::f32 || tensor->row.shape != std::vector<std::int64_t>{shape.head_dim / 2})
    return complain("is not " + std::to_string(shape.head_dim / 2) + " F32 numbers");
  shape.rope.divisors.resize(static_cast<std::size_t>(shape.head_dim / 2));
  dequantize_row(weight_type::f32, tensor->data, shape.rope.divisors.data(), shape.head_dim / 2);
  for (const float divisor : shape.rope.divisors)
    if (!(divisor >= 1e-6f && divisor <= 1e6f))
      return complain("a divisor is out of range");
  tensors.take(name);
  return {};
}

void read_end_tokens(gguf_fields& fields, model_file& out) {
  const auto last = static_cast<std::int64_t>(out.tokenizer.tokens.size()) - 1;
  for (const char* key : {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"})
    if (fields.has(key))
      out.end_tokens.push_back(static_cast<token_id>(fields.integer(key, -1, last)));
}

} // namespace

result<model_file> open_gguf(std::span<const std::byte> file, std::shared_ptr<const void> storage, const std::string& name) {
  auto contents = read_gguf(file);
  if (!contents)
    return contents.fault();
  gguf_fields fields(*contents);
  model_file out;
  out.format = "GGUF v3";
  out.weights.shape = gguf_hyperparameters(fields);
  out.tokenizer = gguf_tokenizer(fields);
  out.chat_template = fields.text("tokenizer.chat_template", "");
  out.sampling = gguf_sampling(fields, out.has_sampling);
  read_end_tokens(fields, out);
  if (fields.failed())
    return fields.fault();
  hyperparameters& shape = out.weights.shape;
  if (shape.name.empty())
    shape.name = name;

  file_tensors tensors(tensor_naming::gguf);
  for (const auto& t : contents->tensors) {
    tensor_row row{std::string(t.name), t.type, t.shape, t.offset, t.bytes};
    out.table.push_back(row);
    if (auto added = tensors.add({std::move(row), file.data() + t.offset}); !added)
      return added.fault();
  }
  shape.tied_output = tensors.find("output.weight") == nullptr;
  auto checked = check_shape(shape);
  if (checked)
    checked = check_sampling(out.sampling);
  if (checked)
    checked = read_divisors(tensors, shape);
  if (checked)
    checked = tensors.bind(out.weights);
  if (checked)
    checked = check_tokenizer(out.tokenizer, shape.vocabulary);
  if (checked)
    checked = complete_end_tokens(out);
  if (!checked)
    return checked.fault();
  for (const auto& [key, value] : contents->entries)
    out.metadata.emplace_back(key, describe(value));
  out.weights.storage = std::move(storage);
  return out;
}

} // namespace troupe
