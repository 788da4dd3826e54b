#include "model/model_file_tensors.hpp"

#include <array>

#include "config/limits.hpp"
#include "model/model_file_checks.hpp"

namespace troupe {

namespace {

enum class extent { one, hidden, q_width, kv_width, head_dim, ffn, vocabulary };
enum class presence { always, with_qk_norm, with_qkv_bias };

std::int64_t size_of(extent e, const hyperparameters& shape) noexcept {
  switch (e) {
  case extent::one: return 1;
  case extent::hidden: return shape.hidden;
  case extent::q_width: return shape.q_width();
  case extent::kv_width: return shape.kv_width();
  case extent::head_dim: return shape.head_dim;
  case extent::ffn: return shape.ffn;
  case extent::vocabulary: return shape.vocabulary;
  }
  return 0;
}

struct slot_rule {
  layer_slot slot;
  extent rows;
  extent columns;
  presence present;
};

using w = layer_weights;
constexpr std::array<slot_rule, 14> rules{{
    {{&w::attention_norm, "attn_norm.weight", "input_layernorm.weight"}, extent::one, extent::hidden, presence::always},
    {{&w::q, "attn_q.weight", "self_attn.q_proj.weight"}, extent::q_width, extent::hidden, presence::always},
    {{&w::k, "attn_k.weight", "self_attn.k_proj.weight"}, extent::kv_width, extent::hidden, presence::always},
    {{&w::v, "attn_v.weight", "self_attn.v_proj.weight"}, extent::kv_width, extent::hidden, presence::always},
    {{&w::q_bias, "attn_q.bias", "self_attn.q_proj.bias"}, extent::one, extent::q_width, presence::with_qkv_bias},
    {{&w::k_bias, "attn_k.bias", "self_attn.k_proj.bias"}, extent::one, extent::kv_width, presence::with_qkv_bias},
    {{&w::v_bias, "attn_v.bias", "self_attn.v_proj.bias"}, extent::one, extent::kv_width, presence::with_qkv_bias},
    {{&w::q_norm, "attn_q_norm.weight", "self_attn.q_norm.weight"}, extent::one, extent::head_dim, presence::with_qk_norm},
    {{&w::k_norm, "attn_k_norm.weight", "self_attn.k_norm.weight"}, extent::one, extent::head_dim, presence::with_qk_norm},
    {{&w::o, "attn_output.weight", "self_attn.o_proj.weight"}, extent::hidden, extent::q_width, presence::always},
    {{&w::ffn_norm, "ffn_norm.weight", "post_attention_layernorm.weight"}, extent::one, extent::hidden, presence::always},
    {{&w::gate, "ffn_gate.weight", "mlp.gate_proj.weight"}, extent::ffn, extent::hidden, presence::always},
    {{&w::up, "ffn_up.weight", "mlp.up_proj.weight"}, extent::ffn, extent::hidden, presence::always},
    {{&w::down, "ffn_down.weight", "mlp.down_proj.weight"}, extent::hidden, extent::ffn, presence::always},
}};

struct outer_names {
  std::string embedding, norm, output;
};

outer_names outer(tensor_naming naming, std::string_view prefix) {
  if (naming == tensor_naming::gguf)
    return {"token_embd.weight", "output_norm.weight", "output.weight"};
  return {std::string(prefix) + "embed_tokens.weight", std::string(prefix) + "norm.weight", "lm_head.weight"};
}

std::string layer_name(tensor_naming naming, std::string_view prefix, int layer, const layer_slot& slot) {
  if (naming == tensor_naming::gguf)
    return "blk." + std::to_string(layer) + "." + std::string(slot.gguf);
  return std::string(prefix) + "layers." + std::to_string(layer) + "." + std::string(slot.hugging_face);
}

std::string shown(const std::vector<std::int64_t>& shape) {
  std::string out = "[";
  for (std::size_t i = 0; i < shape.size(); ++i)
    out += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return out + "]";
}

bool plain(weight_type type) noexcept {
  return info_of(type).block_weights == 1;
}

// What other programs derive again from the configuration: buffers, not weights.
bool derived(std::string_view name) noexcept {
  return name.ends_with("rotary_emb.inv_freq");
}

} // namespace

struct file_tensors::need {
  std::int64_t rows;
  std::int64_t columns;
  bool vector; // stored with one dimension, in a plain type
};

result<void> file_tensors::add(file_tensor tensor) {
  if (!index_.emplace(tensor.row.name, tensors_.size()).second)
    return fail(errc::model_format, "tensor " + in_quotes(tensor.row.name) + " stands twice");
  tensors_.push_back(std::move(tensor));
  return {};
}

const file_tensor* file_tensors::find(std::string_view name) const {
  const auto at = index_.find(std::string(name));
  return at == index_.end() ? nullptr : &tensors_[at->second];
}

result<tensor_view> file_tensors::take_view(const std::string& name, const need& wanted) {
  const file_tensor* tensor = find(name);
  if (tensor == nullptr)
    return fail(errc::model_format, "tensor " + in_quotes(name) + " is missing");
  const auto complain = [&](const std::string& why) {
    return fail(errc::model_format,
                "tensor " + in_quotes(name) + " at byte " + std::to_string(tensor->row.offset) + ": " + why);
  };
  const std::vector<std::int64_t> expected =
      wanted.vector ? std::vector<std::int64_t>{wanted.columns} : std::vector<std::int64_t>{wanted.rows, wanted.columns};
  auto found = tensor->row.shape;
  while (found.size() > expected.size() && found.front() == 1)
    found.erase(found.begin());
  if (found != expected)
    return complain("its shape is " + shown(tensor->row.shape) + ", the model's numbers ask for " + shown(expected));
  if (wanted.vector && !plain(tensor->row.type))
    return complain("a vector is stored as " + std::string(info_of(tensor->row.type).name) + ", not as plain numbers");
  take(name);
  return tensor_view{tensor->row.type, wanted.rows, wanted.columns, tensor->data};
}

result<void> file_tensors::bind_layer(model_weights& weights, int layer, std::string_view prefix) {
  const hyperparameters& shape = weights.shape;
  layer_weights& out = weights.layers[static_cast<std::size_t>(layer)];
  for (const auto& rule : rules) {
    if ((rule.present == presence::with_qk_norm && !shape.qk_norm) ||
        (rule.present == presence::with_qkv_bias && !shape.qkv_bias))
      continue;
    const bool vector = rule.rows == extent::one;
    auto view = take_view(layer_name(naming_, prefix, layer, rule.slot),
                          {size_of(rule.rows, shape), size_of(rule.columns, shape), vector});
    if (!view)
      return view.fault();
    out.*rule.slot.member = *view;
  }
  return {};
}

result<void> file_tensors::refuse_strangers() const {
  for (const auto& tensor : tensors_)
    if (!taken_.contains(tensor.row.name) && !derived(tensor.row.name))
      return fail(errc::unsupported, "tensor " + in_quotes(tensor.row.name) + " at byte " + std::to_string(tensor.row.offset) +
                                         " is not part of the architecture");
  return {};
}

result<void> file_tensors::bind(model_weights& weights, std::string_view prefix) {
  hyperparameters& shape = weights.shape;
  const auto names = outer(naming_, prefix);
  const file_tensor* embedding = find(names.embedding);
  if (embedding == nullptr)
    return fail(errc::model_format, "tensor " + in_quotes(names.embedding) + " is missing");
  const std::int64_t rows = embedding->row.shape.size() == 2 ? embedding->row.shape[0] : 0;
  if (rows < 1 || rows > limits::vocabulary_max)
    return fail(errc::model_format, "tensor " + in_quotes(names.embedding) + " at byte " +
                                        std::to_string(embedding->row.offset) + ": its shape is " +
                                        shown(embedding->row.shape) + ", not [vocabulary, hidden]");
  shape.vocabulary = static_cast<int>(rows);
  shape.qk_norm = shape.arch == architecture::qwen3;
  shape.qkv_bias = find(layer_name(naming_, prefix, 0, rules[4].slot)) != nullptr;
  if (shape.arch == architecture::qwen2 && !shape.qkv_bias)
    return fail(errc::model_format, "tensor " + in_quotes(layer_name(naming_, prefix, 0, rules[4].slot)) + " is missing");

  auto view = take_view(names.embedding, {shape.vocabulary, shape.hidden, false});
  if (!view)
    return view.fault();
  weights.token_embedding = *view;
  view = take_view(names.norm, {1, shape.hidden, true});
  if (!view)
    return view.fault();
  weights.output_norm = *view;
  weights.output = weights.token_embedding;
  if (!shape.tied_output) {
    view = take_view(names.output, {shape.vocabulary, shape.hidden, false});
    if (!view)
      return view.fault();
    weights.output = *view;
  } else {
    take(names.output); // some writers store the tied matrix a second time
  }
  weights.layers.resize(static_cast<std::size_t>(shape.layers));
  for (int layer = 0; layer < shape.layers; ++layer)
    if (auto bound = bind_layer(weights, layer, prefix); !bound)
      return bound;
  return refuse_strangers();
}

const std::vector<layer_slot>& layer_slots() {
  static const std::vector<layer_slot> slots = [] {
    std::vector<layer_slot> out;
    for (const auto& rule : rules)
      out.push_back(rule.slot);
    return out;
  }();
  return slots;
}

} // namespace troupe
