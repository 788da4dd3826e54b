#include "gguf_draft.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"
#include "base/random.hpp"
#include "model/weight_types.hpp"

namespace troupe::test {

namespace {

template <class T>
std::string packed(T value) {
  std::string out(sizeof value, '\0');
  std::memcpy(out.data(), &value, sizeof value);
  return out;
}

std::uint32_t ggml_number(weight_type type) {
  switch (type) {
  case weight_type::f32: return 0;
  case weight_type::f16: return 1;
  case weight_type::q4_0: return 2;
  case weight_type::q4_1: return 3;
  case weight_type::q5_0: return 6;
  case weight_type::q5_1: return 7;
  case weight_type::q8_0: return 8;
  case weight_type::q4_k: return 12;
  case weight_type::q5_k: return 13;
  case weight_type::q6_k: return 14;
  case weight_type::bf16: return 30;
  }
  return 99;
}

void add_numbers(gguf_draft& draft, const std::string& arch, std::uint32_t hidden, std::uint32_t head_dim) {
  draft.set_text("general.architecture", arch);
  draft.set_text("general.name", "Small");
  draft.set_u32(arch + ".block_count", 2);
  draft.set_u32(arch + ".embedding_length", hidden);
  draft.set_u32(arch + ".attention.head_count", 4);
  draft.set_u32(arch + ".attention.head_count_kv", 2);
  draft.set_u32(arch + ".attention.key_length", head_dim);
  draft.set_u32(arch + ".attention.value_length", head_dim);
  draft.set_u32(arch + ".feed_forward_length", hidden);
  draft.set_u32(arch + ".context_length", 512);
  draft.set_f32(arch + ".attention.layer_norm_rms_epsilon", 1e-6f);
  draft.set_f32(arch + ".rope.freq_base", 1e6f);
}

void add_tokenizer(gguf_draft& draft, const std::string& pre) {
  draft.set_text("tokenizer.ggml.model", "gpt2");
  draft.set_text("tokenizer.ggml.pre", pre);
  draft.set_texts("tokenizer.ggml.tokens",
                  {"a", "b", "c", "ab", "abc", "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "[PAD9]"});
  draft.set_i32s("tokenizer.ggml.token_type", {1, 1, 1, 1, 1, 3, 3, 3, 4, 5});
  draft.set_texts("tokenizer.ggml.merges", {"a b", "ab c"});
  draft.set_u32("tokenizer.ggml.bos_token_id", 5);
  draft.set_u32("tokenizer.ggml.eos_token_id", 7);
  draft.set_u32("tokenizer.ggml.padding_token_id", 5);
  draft.set_text("tokenizer.chat_template", "{{ messages }}");
}

} // namespace

std::string packed_u32(std::uint32_t value) {
  return packed(value);
}
std::string packed_u64(std::uint64_t value) {
  return packed(value);
}
std::string packed_text(const std::string& text) {
  return packed_u64(text.size()) + text;
}

void gguf_draft::set(const std::string& key, std::uint32_t type, std::string payload) {
  for (auto& e : entries)
    if (e.key == key) {
      e = {key, type, std::move(payload)};
      return;
    }
  entries.push_back({key, type, std::move(payload)});
}

void gguf_draft::set_u32(const std::string& key, std::uint32_t value) {
  set(key, 4, packed(value));
}
void gguf_draft::set_f32(const std::string& key, float value) {
  set(key, 6, packed(value));
}
void gguf_draft::set_bool(const std::string& key, unsigned char value) {
  set(key, 7, packed(value));
}
void gguf_draft::set_text(const std::string& key, const std::string& value) {
  set(key, 8, packed_text(value));
}

void gguf_draft::set_texts(const std::string& key, const std::vector<std::string>& values) {
  std::string payload = packed_u32(8) + packed_u64(values.size());
  for (const auto& value : values)
    payload += packed_text(value);
  set(key, 9, payload);
}

void gguf_draft::set_i32s(const std::string& key, const std::vector<std::int32_t>& values) {
  std::string payload = packed_u32(5) + packed_u64(values.size());
  for (const auto value : values)
    payload += packed(value);
  set(key, 9, payload);
}

void gguf_draft::erase(const std::string& key) {
  std::erase_if(entries, [&](const entry& e) { return e.key == key; });
}

gguf_draft::tensor& gguf_draft::named(const std::string& name) {
  const auto at = std::find_if(tensors.begin(), tensors.end(), [&](const tensor& t) { return t.name == name; });
  TROUPE_CHECK(at != tensors.end());
  return *at;
}

void gguf_draft::erase_tensor(const std::string& name) {
  std::erase_if(tensors, [&](const tensor& t) { return t.name == name; });
}

void gguf_draft::place_tensors() {
  std::uint64_t offset = 0;
  for (auto& t : tensors) {
    t.offset = offset;
    offset = (offset + t.data.size() + alignment - 1) / alignment * alignment;
  }
}

std::size_t gguf_draft::header_bytes() const {
  gguf_draft empty = *this;
  empty.tensor_count = tensor_count.value_or(tensors.size());
  for (auto& t : empty.tensors)
    t.data.clear();
  return empty.bytes().size();
}

std::string gguf_draft::bytes() const {
  std::string out = "GGUF" + packed(version) + packed_u64(tensor_count.value_or(tensors.size())) +
                    packed_u64(entry_count.value_or(entries.size()));
  for (const auto& e : entries)
    out += packed_text(e.key) + packed_u32(e.type) + e.payload;
  for (const auto& t : tensors) {
    out += packed_text(t.name) + packed_u32(static_cast<std::uint32_t>(t.extents.size()));
    for (const auto extent : t.extents)
      out += packed_u64(extent);
    out += packed_u32(t.type) + packed_u64(t.offset);
  }
  out.resize((out.size() + alignment - 1) / alignment * alignment);
  const std::size_t start = out.size();
  for (const auto& t : tensors) { // where each would lie if nothing lied; a false offset moves nothing
    out += t.data;
    out.resize(start + (out.size() - start + alignment - 1) / alignment * alignment);
  }
  return out;
}

std::string random_blocks(weight_type type, std::int64_t count, std::uint64_t key) {
  std::vector<float> weights(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < weights.size(); ++i)
    weights[i] = static_cast<float>(2.0 * uniform_at(key, i) - 1.0);
  const auto& info = info_of(type);
  std::string out(static_cast<std::size_t>(count / info.block_weights * info.block_bytes), '\0');
  quantize_row(type, weights.data(), reinterpret_cast<std::byte*>(out.data()), count);
  return out;
}

gguf_draft small_gguf(architecture arch, weight_type type) {
  const std::uint64_t hidden = info_of(type).block_weights == 256 ? 256 : 64;
  const std::uint64_t head_dim = arch == architecture::qwen3 ? hidden / 2 : hidden / 4; // qwen3: q is wider than hidden
  gguf_draft draft;
  add_numbers(draft, std::string(name_of(arch)), static_cast<std::uint32_t>(hidden), static_cast<std::uint32_t>(head_dim));
  add_tokenizer(draft, arch == architecture::llama ? "smollm" : "qwen2");
  const auto add = [&](const std::string& name, weight_type t, std::vector<std::uint64_t> extents) {
    std::uint64_t count = 1;
    for (const auto extent : extents)
      count *= extent;
    draft.tensors.push_back(
        {name, extents, ggml_number(t), 0, random_blocks(t, static_cast<std::int64_t>(count), draft.tensors.size() + 1)});
  };
  const auto vector = weight_type::f32;
  const std::uint64_t q = 4 * head_dim, kv = 2 * head_dim;
  add("token_embd.weight", type, {hidden, 12});
  for (const std::string layer : {"blk.0.", "blk.1."}) {
    add(layer + "attn_norm.weight", vector, {hidden});
    add(layer + "attn_q.weight", type, {hidden, q});
    add(layer + "attn_k.weight", type, {hidden, kv});
    add(layer + "attn_v.weight", type, {hidden, kv});
    if (arch == architecture::qwen2) {
      add(layer + "attn_q.bias", vector, {q});
      add(layer + "attn_k.bias", vector, {kv});
      add(layer + "attn_v.bias", vector, {kv});
    }
    if (arch == architecture::qwen3) {
      add(layer + "attn_q_norm.weight", vector, {head_dim});
      add(layer + "attn_k_norm.weight", vector, {head_dim});
    }
    add(layer + "attn_output.weight", type, {q, hidden});
    add(layer + "ffn_norm.weight", vector, {hidden});
    add(layer + "ffn_gate.weight", type, {hidden, hidden});
    add(layer + "ffn_up.weight", type, {hidden, hidden});
    add(layer + "ffn_down.weight", type, {hidden, hidden});
  }
  add("output_norm.weight", vector, {hidden});
  draft.place_tensors();
  return draft;
}

} // namespace troupe::test
