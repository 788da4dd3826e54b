#include "safetensors_draft.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "gguf_draft.hpp"
#include "model_file_temp_folder.hpp"

namespace troupe::test {

namespace {

constexpr const char* qwen_pre = R"({"type": "Sequence", "pretokenizers": [
  {"type": "Split", "pattern": {"Regex": "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},
   "behavior": "Isolated", "invert": false},
  {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false}]})";

std::string tokenizer_json() {
  return std::string(R"({"version": "1.0", "added_tokens": [
  {"id": 5, "content": "<|endoftext|>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
  {"id": 6, "content": "<|im_start|>", "special": true},
  {"id": 7, "content": "<|im_end|>", "special": true},
  {"id": 8, "content": "<think>", "special": false}],
"normalizer": {"type": "NFC"},
"pre_tokenizer": )") +
         qwen_pre + R"(,
"post_processor": {"type": "ByteLevel", "add_prefix_space": false},
"decoder": {"type": "ByteLevel"},
"model": {"type": "BPE", "dropout": null, "unk_token": null, "byte_fallback": false, "ignore_merges": false,
  "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4},
  "merges": ["a b", "ab c"]}})";
}

std::string config_json(architecture arch, int head_dim) {
  const std::string type(name_of(arch));
  return R"({"model_type": ")" + type + R"(", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
"num_key_value_heads": 2, "head_dim": )" +
         std::to_string(head_dim) + R"(, "intermediate_size": 96, "max_position_embeddings": 512, "rms_norm_eps": 1e-06,
"rope_theta": 1000000.0, "rope_scaling": null, "tie_word_embeddings": true, "hidden_act": "silu", "bos_token_id": 5,
"eos_token_id": 7, "vocab_size": 12})";
}

} // namespace

std::string safetensors_draft::header() const {
  std::string out = "{";
  std::size_t offset = 0;
  for (const auto& t : tensors) {
    out += (out.size() > 1 ? ",\"" : "\"") + t.name + "\":{\"dtype\":\"" + t.type + "\",\"shape\":[";
    for (std::size_t i = 0; i < t.shape.size(); ++i)
      out += (i > 0 ? "," : "") + std::to_string(t.shape[i]);
    out += "],\"data_offsets\":[" + std::to_string(offset) + "," + std::to_string(offset + t.data.size()) + "]}";
    offset += t.data.size();
  }
  out += "}";
  out.resize((out.size() + 7) / 8 * 8, ' ');
  return out;
}

std::string safetensors_draft::bytes_with(const std::string& header) const {
  std::string out = packed_text(header);
  for (const auto& t : tensors)
    out += t.data;
  return out;
}

safetensors_draft::tensor& safetensors_draft::named(const std::string& name) {
  const auto at = std::find_if(tensors.begin(), tensors.end(), [&](const tensor& t) { return t.name == name; });
  TROUPE_CHECK(at != tensors.end());
  return *at;
}

void hf_draft::edit(const std::string& file, const std::string& from, const std::string& to) {
  auto& text = files.at(file);
  const auto at = text.find(from);
  TROUPE_CHECK(at != std::string::npos);
  text.replace(at, from.size(), to);
}

void hf_draft::write(const std::filesystem::path& folder) const {
  for (const auto& [name, text] : files)
    write_file(folder / name, text);
  if (!weights.tensors.empty())
    write_file(folder / "model.safetensors", weights.bytes());
}

hf_draft small_hf(architecture arch, weight_type type) {
  const int head_dim = arch == architecture::qwen3 ? 32 : 16;
  hf_draft out;
  out.files["config.json"] = config_json(arch, head_dim);
  out.files["tokenizer.json"] = tokenizer_json();
  out.files["tokenizer_config.json"] =
      R"({"add_bos_token": false, "bos_token": null, "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>",
"chat_template": "{{ messages }}"})";
  out.files["generation_config.json"] =
      R"({"do_sample": true, "temperature": 0.6, "top_p": 0.95, "top_k": 20, "eos_token_id": [7, 5]})";
  const auto add = [&](const std::string& name, std::vector<std::int64_t> shape) {
    std::int64_t count = 1;
    for (const auto extent : shape)
      count *= extent;
    out.weights.tensors.push_back(
        {name, std::string(info_of(type).name), shape, random_blocks(type, count, out.weights.tensors.size() + 1)});
  };
  const int q = 4 * head_dim, kv = 2 * head_dim;
  add("model.embed_tokens.weight", {12, 64});
  for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
    add(layer + "input_layernorm.weight", {64});
    add(layer + "self_attn.q_proj.weight", {q, 64});
    add(layer + "self_attn.k_proj.weight", {kv, 64});
    add(layer + "self_attn.v_proj.weight", {kv, 64});
    if (arch == architecture::qwen2) {
      add(layer + "self_attn.q_proj.bias", {q});
      add(layer + "self_attn.k_proj.bias", {kv});
      add(layer + "self_attn.v_proj.bias", {kv});
    }
    if (arch == architecture::qwen3) {
      add(layer + "self_attn.q_norm.weight", {head_dim});
      add(layer + "self_attn.k_norm.weight", {head_dim});
    }
    add(layer + "self_attn.o_proj.weight", {64, q});
    add(layer + "post_attention_layernorm.weight", {64});
    add(layer + "mlp.gate_proj.weight", {96, 64});
    add(layer + "mlp.up_proj.weight", {96, 64});
    add(layer + "mlp.down_proj.weight", {64, 96});
  }
  add("model.norm.weight", {64});
  return out;
}

} // namespace troupe::test
