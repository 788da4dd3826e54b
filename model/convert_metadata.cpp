#include "model/convert_metadata.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "model/gguf_model.hpp"

namespace troupe {

namespace {

// llama.cpp's number for "mostly this type".
std::uint32_t file_type_of(weight_type type) noexcept {
  switch (type) {
  case weight_type::f32: return 0;
  case weight_type::f16: return 1;
  case weight_type::q4_0: return 2;
  case weight_type::q4_1: return 3;
  case weight_type::q8_0: return 7;
  case weight_type::q5_0: return 8;
  case weight_type::q5_1: return 9;
  case weight_type::q4_k: return 15;
  case weight_type::q5_k: return 17;
  case weight_type::q6_k: return 18;
  case weight_type::bf16: return 32;
  }
  return 0;
}

// The type that holds most of the bytes.
weight_type main_type(const model_file& model) {
  std::map<weight_type, std::uint64_t> bytes;
  for (const auto& row : model.table)
    bytes[row.type] += row.bytes;
  const auto most = std::max_element(bytes.begin(), bytes.end(), [](auto& a, auto& b) { return a.second < b.second; });
  return most == bytes.end() ? weight_type::f32 : most->first;
}

void add_shape(const hyperparameters& shape, gguf_writer& out) {
  const std::string arch(name_of(shape.arch));
  const auto whole = [&](const char* key, int value) { out.add_u32(arch + key, static_cast<std::uint32_t>(value)); };
  whole(".context_length", shape.context_tokens);
  whole(".embedding_length", shape.hidden);
  whole(".block_count", shape.layers);
  whole(".feed_forward_length", shape.ffn);
  whole(".attention.head_count", shape.heads);
  whole(".attention.head_count_kv", shape.kv_heads);
  whole(".attention.key_length", shape.head_dim);
  whole(".attention.value_length", shape.head_dim);
  whole(".rope.dimension_count", shape.head_dim);
  whole(".vocab_size", shape.vocabulary);
  out.add_f32(arch + ".attention.layer_norm_rms_epsilon", shape.norm_epsilon);
  out.add_f32(arch + ".rope.freq_base", shape.rope.base);
}

void add_scaling(const hyperparameters& shape, gguf_writer& out) {
  const rope_settings& rope = shape.rope;
  const std::string key = std::string(name_of(shape.arch)) + ".rope.scaling.";
  if (rope.scaling != rope_scaling::linear && rope.scaling != rope_scaling::yarn)
    return;
  out.add_text(key + "type", rope.scaling == rope_scaling::linear ? "linear" : "yarn");
  out.add_f32(key + "factor", rope.factor);
  if (rope.scaling == rope_scaling::linear)
    return;
  out.add_u32(key + "original_context_length", static_cast<std::uint32_t>(rope.original_context));
  out.add_f32(key + "yarn_beta_fast", rope.beta_fast);
  out.add_f32(key + "yarn_beta_slow", rope.beta_slow);
  if (rope.attention_factor != 0.0f)
    out.add_f32(key + "attn_factor", rope.attention_factor / (0.1f * std::log(rope.factor) + 1.0f));
}

std::int32_t type_number_of(token_kind kind) noexcept {
  switch (kind) {
  case token_kind::normal: return 1;
  case token_kind::control: return 3;
  case token_kind::user_defined: return 4;
  case token_kind::unused: return 5;
  }
  return 5;
}

// One text and type for each row of the embedding: readers count tokens to know its height.
void add_tokens(const tokenizer_data& tokens, int vocabulary, gguf_writer& out) {
  std::vector<std::string> texts = tokens.tokens;
  std::vector<std::int32_t> types;
  for (const auto kind : tokens.kinds)
    types.push_back(type_number_of(kind));
  texts.resize(static_cast<std::size_t>(vocabulary));
  types.resize(static_cast<std::size_t>(vocabulary), type_number_of(token_kind::unused));
  for (std::size_t id = 0; id < texts.size(); ++id)
    if (texts[id].empty())
      texts[id] = "[PAD" + std::to_string(id) + "]";
  out.add_texts("tokenizer.ggml.tokens", texts);
  out.add_i32s("tokenizer.ggml.token_type", types);
  std::vector<std::string> merges;
  for (const auto& [left, right] : tokens.merges)
    merges.push_back(left + " " + right);
  out.add_texts("tokenizer.ggml.merges", merges);
}

void add_tokenizer(const model_file& model, gguf_writer& out) {
  const tokenizer_data& tokens = model.tokenizer;
  out.add_text("tokenizer.ggml.model", "gpt2");
  out.add_text("tokenizer.ggml.pre", gguf_name_of(tokens.pre));
  if (tokens.nfc != (tokens.pre == pre_tokenizer::qwen2))
    out.add_bool("troupe.tokenizer.nfc", tokens.nfc);
  if (tokens.ignore_merges != (tokens.pre == pre_tokenizer::llama_bpe))
    out.add_bool("troupe.tokenizer.ignore_merges", tokens.ignore_merges);
  add_tokens(tokens, model.weights.shape.vocabulary, out);
  const auto id = [&](const char* key, token_id value) {
    if (value >= 0)
      out.add_u32(key, static_cast<std::uint32_t>(value));
  };
  id("tokenizer.ggml.bos_token_id", tokens.bos);
  id("tokenizer.ggml.eos_token_id", tokens.eos);
  id("tokenizer.ggml.padding_token_id", tokens.padding);
  const auto other_end =
      std::find_if(model.end_tokens.begin(), model.end_tokens.end(), [&](token_id end) { return end != tokens.eos; });
  if (other_end != model.end_tokens.end())
    out.add_u32("tokenizer.ggml.eot_token_id", static_cast<std::uint32_t>(*other_end));
  out.add_bool("tokenizer.ggml.add_bos_token", tokens.add_bos);
  if (!model.chat_template.empty())
    out.add_text("tokenizer.chat_template", model.chat_template);
}

void add_sampling(const sampling_params& sampling, gguf_writer& out) {
  out.add_u32("general.sampling.top_k", static_cast<std::uint32_t>(sampling.top_k));
  out.add_f32("general.sampling.top_p", sampling.top_p);
  out.add_f32("general.sampling.min_p", sampling.min_p);
  out.add_f32("general.sampling.temp", sampling.temperature);
  out.add_f32("general.sampling.penalty_repeat", sampling.repetition_penalty);
}

} // namespace

// Llama 3.1: wavelengths below the high-frequency bound stay, those above the low-frequency bound are stretched by the factor,
// between them the two are blended.
std::vector<float> gguf_rope_divisors(const hyperparameters& shape) {
  const rope_settings& rope = shape.rope;
  if (rope.scaling != rope_scaling::llama3)
    return rope.divisors;
  std::vector<float> out;
  for (int i = 0; i < shape.head_dim / 2; ++i) {
    const double frequency = std::pow(static_cast<double>(rope.base), -2.0 * i / shape.head_dim);
    const double wavelength = 2.0 * std::numbers::pi / frequency;
    const double turns = rope.original_context / wavelength; // within the original context
    const double low = rope.low_frequency_factor, high = rope.high_frequency_factor;
    const double kept = std::clamp((turns - low) / (high - low), 0.0, 1.0);
    out.push_back(static_cast<float>(1.0 / ((1.0 - kept) / static_cast<double>(rope.factor) + kept)));
  }
  return out;
}

result<void> add_gguf_metadata(const model_file& model, std::optional<weight_type> type, gguf_writer& out) {
  const hyperparameters& shape = model.weights.shape;
  if (shape.arch != architecture::llama && !gguf_rope_divisors(shape).empty())
    return fail(errc::unsupported, "GGUF knows RoPE divisors for llama only, not for " + std::string(name_of(shape.arch)));
  const weight_type main = type.value_or(main_type(model));
  out.add_text("general.architecture", name_of(shape.arch));
  out.add_text("general.type", "model");
  out.add_text("general.name", shape.name);
  out.add_u32("general.alignment", gguf_writer::alignment);
  out.add_u32("general.file_type", file_type_of(main));
  out.add_u32("general.quantization_version", 2);
  add_shape(shape, out);
  add_scaling(shape, out);
  add_tokenizer(model, out);
  if (model.has_sampling)
    add_sampling(model.sampling, out);
  return {};
}

} // namespace troupe
