// A GGUF file as a model: what its keys and tensors come to, and what is refused.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <memory>

#include "gguf_draft.hpp"
#include "model/gguf_model.hpp"

using namespace troupe;
using test::gguf_draft;

namespace {

result<model_file> open(const gguf_draft& draft) {
  const auto bytes = std::make_shared<std::string>(draft.bytes());
  return open_gguf(std::as_bytes(std::span(bytes->data(), bytes->size())), bytes, "fallback");
}

std::string fault_after(const std::function<void(gguf_draft&)>& bend, errc code = errc::model_format,
                        architecture arch = architecture::qwen3) {
  auto draft = test::small_gguf(arch);
  bend(draft);
  const auto opened = open(draft);
  if (opened)
    return "(opened)";
  CHECK(opened.fault().code == code);
  return opened.fault().message;
}

bool says(const std::string& message, const std::string& part) {
  const bool found = message.find(part) != std::string::npos;
  if (!found)
    MESSAGE("\"" << message << "\" lacks \"" << part << "\"");
  return found;
}

} // namespace

TEST_CASE("a file of each architecture opens with its numbers and views") {
  for (const auto arch : {architecture::qwen3, architecture::qwen2, architecture::llama}) {
    CAPTURE(name_of(arch));
    const auto draft = test::small_gguf(arch);
    const auto opened = open(draft);
    REQUIRE_MESSAGE(opened.has_value(), opened.fault().message);
    const auto& shape = opened->weights.shape;
    CHECK(shape.arch == arch);
    CHECK(shape.name == "Small");
    CHECK(shape.layers == 2);
    CHECK(shape.hidden == 64);
    CHECK(shape.heads == 4);
    CHECK(shape.kv_heads == 2);
    CHECK(shape.head_dim == (arch == architecture::qwen3 ? 32 : 16));
    CHECK(shape.ffn == 64);
    CHECK(shape.vocabulary == 12);
    CHECK(shape.context_tokens == 512);
    CHECK(shape.norm_epsilon == 1e-6f);
    CHECK(shape.rope.base == 1e6f);
    CHECK(shape.rope.adjacent_pairs == (arch == architecture::llama));
    CHECK(shape.tied_output);
    CHECK(shape.qk_norm == (arch == architecture::qwen3));
    CHECK(shape.qkv_bias == (arch == architecture::qwen2));
    REQUIRE(opened->weights.layers.size() == 2);
    const auto& layer = opened->weights.layers[1];
    CHECK(layer.q.rows == shape.q_width());
    CHECK(layer.q.columns == 64);
    CHECK(static_cast<bool>(layer.q_norm) == shape.qk_norm);
    CHECK(static_cast<bool>(layer.v_bias) == shape.qkv_bias);
    CHECK(opened->weights.output.data == opened->weights.token_embedding.data);
    CHECK(opened->table.size() == draft.tensors.size());
    CHECK(opened->format == "GGUF v3");
    auto whole = draft;
    CHECK(std::memcmp(layer.down.data, whole.named("blk.1.ffn_down.weight").data.data(), layer.down.bytes()) == 0);
  }
}

TEST_CASE("matrices of every type open with views of the right size") {
  for (int i = 0; i < 11; ++i) {
    const auto type = static_cast<weight_type>(i);
    CAPTURE(info_of(type).name);
    auto draft = test::small_gguf(architecture::qwen3, type);
    const auto opened = open(draft);
    REQUIRE_MESSAGE(opened.has_value(), opened.fault().message);
    const auto& up = opened->weights.layers[0].up;
    CHECK(up.type == type);
    CHECK(up.bytes() == draft.named("blk.0.ffn_up.weight").data.size());
    CHECK(opened->weights.layers[0].ffn_norm.type == weight_type::f32);
  }
}

TEST_CASE("the tokenizer comes out of the metadata") {
  const auto opened = open(test::small_gguf());
  REQUIRE(opened);
  const auto& tokens = opened->tokenizer;
  CHECK(tokens.pre == pre_tokenizer::qwen2);
  CHECK(tokens.nfc);
  CHECK_FALSE(tokens.ignore_merges);
  CHECK_FALSE(tokens.add_bos);
  CHECK(tokens.tokens.size() == 10);
  CHECK(tokens.kinds[4] == token_kind::normal);
  CHECK(tokens.kinds[7] == token_kind::control);
  CHECK(tokens.kinds[8] == token_kind::user_defined);
  CHECK(tokens.kinds[9] == token_kind::unused);
  CHECK(tokens.merges == std::vector<std::pair<std::string, std::string>>{{"a", "b"}, {"ab", "c"}});
  CHECK(tokens.bos == 5);
  CHECK(tokens.eos == 7);
  CHECK(tokens.padding == 5);
  CHECK(opened->chat_template == "{{ messages }}");
}

TEST_CASE("each pre-tokenizer name that we know brings its family's habits") {
  struct row {
    const char* name;
    pre_tokenizer pre;
    bool nfc, ignore_merges, add_bos;
  };
  for (const row& r : {row{"qwen2", pre_tokenizer::qwen2, true, false, false},
                       {"deepseek-r1-qwen", pre_tokenizer::qwen2, true, false, false},
                       {"llama-bpe", pre_tokenizer::llama_bpe, false, true, true},
                       {"llama3", pre_tokenizer::llama_bpe, false, true, true},
                       {"llama-v3", pre_tokenizer::llama_bpe, false, true, true},
                       {"gpt-2", pre_tokenizer::gpt2, false, false, false},
                       {"smollm", pre_tokenizer::smollm, false, false, false}}) {
    CAPTURE(r.name);
    auto draft = test::small_gguf();
    draft.set_text("tokenizer.ggml.pre", r.name);
    const auto opened = open(draft);
    REQUIRE(opened);
    CHECK(opened->tokenizer.pre == r.pre);
    CHECK(opened->tokenizer.nfc == r.nfc);
    CHECK(opened->tokenizer.ignore_merges == r.ignore_merges);
    CHECK(opened->tokenizer.add_bos == r.add_bos);
    draft.set_bool("tokenizer.ggml.add_bos_token", r.add_bos ? 0 : 1);
    const auto turned = open(draft);
    REQUIRE(turned);
    CHECK(turned->tokenizer.add_bos != r.add_bos);
  }
}

TEST_CASE("answers end at eos, eot and the control tokens that are named so") {
  auto draft = test::small_gguf();
  auto opened = open(draft);
  REQUIRE(opened);
  CHECK(opened->end_tokens == std::vector<token_id>{5, 7});
  draft.set_i32s("tokenizer.ggml.token_type", {1, 1, 1, 1, 1, 1, 3, 4, 4, 5}); // <|im_end|> is mere text now, yet eos
  draft.set_u32("tokenizer.ggml.eot_token_id", 6);
  opened = open(draft);
  REQUIRE(opened);
  CHECK(opened->end_tokens == std::vector<token_id>{6, 7});
}

TEST_CASE("sampling defaults are read where the file has them") {
  auto draft = test::small_gguf();
  auto opened = open(draft);
  REQUIRE(opened);
  CHECK_FALSE(opened->has_sampling);
  draft.set_f32("general.sampling.temp", 0.6f);
  draft.set_f32("general.sampling.top_p", 0.95f);
  draft.set_i32s("general.sampling.other", {1});
  draft.set("general.sampling.top_k", 5, test::packed_u32(20));
  draft.set_f32("general.sampling.min_p", 0.05f);
  opened = open(draft);
  REQUIRE(opened);
  CHECK(opened->has_sampling);
  CHECK(opened->sampling.temperature == 0.6f);
  CHECK(opened->sampling.top_p == 0.95f);
  CHECK(opened->sampling.top_k == 20);
  CHECK(opened->sampling.min_p == 0.05f);
  CHECK(says(fault_after([](auto& d) { d.set_f32("general.sampling.top_p", 0.0f); }), "sampling default top_p"));
  CHECK(says(fault_after([](auto& d) { d.set_f32("general.sampling.temp", -1.0f); }), "sampling default temperature"));
  CHECK(
      says(fault_after([](auto& d) { d.set_f32("general.sampling.temp", std::nanf("")); }), "general.sampling.temp at byte "));
}

TEST_CASE("RoPE settings come from the file") {
  auto draft = test::small_gguf(architecture::llama);
  draft.erase("llama.rope.freq_base");
  draft.set_text("llama.rope.scaling.type", "linear");
  draft.set_f32("llama.rope.scaling.factor", 4.0f);
  auto opened = open(draft);
  REQUIRE(opened);
  CHECK(opened->weights.shape.rope.base == 10'000.0f);
  CHECK(opened->weights.shape.rope.scaling == rope_scaling::linear);
  CHECK(opened->weights.shape.rope.factor == 4.0f);
  draft.set_text("llama.rope.scaling.type", "yarn");
  draft.set_u32("llama.rope.scaling.original_context_length", 128);
  draft.set_f32("llama.rope.scaling.attn_factor", 2.0f);
  opened = open(draft);
  REQUIRE(opened);
  CHECK(opened->weights.shape.rope.scaling == rope_scaling::yarn);
  CHECK(opened->weights.shape.rope.original_context == 128);
  CHECK(opened->weights.shape.rope.attention_factor == doctest::Approx(2.0 * (0.1 * std::log(4.0) + 1.0)));
  draft.set_text("llama.rope.scaling.type", "longrope");
  CHECK(says(open(draft).fault().message, "\"longrope\" is not supported"));

  auto divided = test::small_gguf(architecture::llama);
  divided.tensors.push_back({"rope_freqs.weight", {8}, 0, 0, test::random_blocks(weight_type::f32, 8, 1)});
  std::vector<float> divisors{1, 1, 1, 1, 2, 4, 8, 8};
  std::memcpy(divided.tensors.back().data.data(), divisors.data(), 32);
  divided.place_tensors();
  opened = open(divided);
  REQUIRE_MESSAGE(opened.has_value(), opened.fault().message);
  CHECK(opened->weights.shape.rope.divisors == divisors);
  divisors[3] = 0.0f;
  std::memcpy(divided.tensors.back().data.data(), divisors.data(), 32);
  CHECK(says(open(divided).fault().message, "a divisor is out of range"));
  divided.tensors.back().extents = {4, 2};
  CHECK(says(open(divided).fault().message, "is not 8 F32 numbers"));
}

TEST_CASE("numbers that are missing, absurd or at odds are refused by name") {
  CHECK(says(fault_after([](auto& d) { d.set_text("general.architecture", "mamba"); }, errc::unsupported),
             "general.architecture at byte"));
  CHECK(says(fault_after([](auto& d) { d.erase("general.architecture"); }), "general.architecture: the file has no such key"));
  for (const char* key : {"block_count", "embedding_length", "attention.head_count", "feed_forward_length", "context_length",
                          "attention.layer_norm_rms_epsilon"}) {
    const std::string full = std::string("qwen3.") + key;
    CHECK(says(fault_after([&](auto& d) { d.erase(full); }), full + ": the file has no such key"));
    CHECK(says(fault_after([&](auto& d) { d.set_text(full, "x"); }), full + " at byte "));
  }
  for (const char* key : {"block_count", "embedding_length", "attention.head_count", "attention.head_count_kv",
                          "feed_forward_length", "context_length", "attention.key_length"}) {
    const std::string full = std::string("qwen3.") + key;
    CHECK(says(fault_after([&](auto& d) { d.set_u32(full, 0); }), full + " at byte "));
    CHECK(says(fault_after([&](auto& d) { d.set_u32(full, 0xffffffffu); }), "is outside 1.."));
  }
  CHECK(says(fault_after([](auto& d) { d.set_u32("qwen3.attention.head_count_kv", 3); }), "4 attention heads cannot share 3"));
  CHECK(says(fault_after([](auto& d) {
               d.set_u32("qwen3.attention.key_length", 33);
               d.set_u32("qwen3.attention.value_length", 33);
             }),
             "33 is odd"));
  CHECK(says(fault_after([](auto& d) { d.set_u32("qwen3.attention.value_length", 16); }, errc::unsupported),
             "value_length at byte"));
  CHECK(says(fault_after([](auto& d) { d.set_u32("qwen3.rope.dimension_count", 16); }, errc::unsupported),
             "dimension_count at byte"));
  CHECK(says(fault_after([](auto& d) { d.set_f32("qwen3.rope.freq_base", 0.0f); }), "qwen3.rope.freq_base at byte"));
  CHECK(
      says(fault_after([](auto& d) { d.set("split.count", 2, std::string("\x02\0", 2)); }, errc::unsupported), "split.count"));
  CHECK(says(fault_after(
                 [](auto& d) {
                   d.erase("llama.attention.key_length");
                   d.set_u32("llama.embedding_length", 66);
                 },
                 errc::model_format, architecture::llama),
             "llama.attention.key_length"));
}

TEST_CASE("head_dim is the width over the heads only where the file does not say it") {
  auto draft = test::small_gguf(architecture::llama);
  draft.erase("llama.attention.key_length");
  draft.erase("llama.attention.value_length");
  const auto opened = open(draft);
  REQUIRE(opened);
  CHECK(opened->weights.shape.head_dim == 16);
}

TEST_CASE("tensors that are missing, strange or of another shape are refused by name") {
  CHECK(says(fault_after([](auto& d) {
               d.erase_tensor("token_embd.weight");
               d.place_tensors();
             }),
             "\"token_embd.weight\" is missing"));
  CHECK(says(fault_after([](auto& d) {
               d.erase_tensor("blk.1.ffn_up.weight");
               d.place_tensors();
             }),
             "\"blk.1.ffn_up.weight\" is missing"));
  CHECK(says(fault_after([](auto& d) { d.set_u32("qwen3.block_count", 3); }), "\"blk.2.attn_norm.weight\" is missing"));
  CHECK(says(fault_after([](auto& d) { d.set_u32("qwen3.block_count", 1); }, errc::unsupported),
             "is not part of the architecture"));
  CHECK(says(fault_after([](auto& d) { d.tensors[1].name = "blk.0.adapter"; }), "\"blk.0.attn_norm.weight\" is missing"));
  // Rows of q that are not heads x head_dim, with as many weights.
  CHECK(says(fault_after([](auto& d) {
               d.named("blk.0.attn_q.weight").extents = {128, 64};
             }),
             "its shape is [64, 128], the model's numbers ask for [128, 64]"));
  CHECK(says(fault_after([](auto& d) { d.named("blk.0.attn_norm.weight").extents = {32, 2}; }), "blk.0.attn_norm.weight"));
  CHECK(says(fault_after([](auto& d) { d.named("token_embd.weight").extents = {768}; }), "not [vocabulary, hidden]"));
  CHECK(says(fault_after([](auto& d) {
               auto& norm = d.named("output_norm.weight");
               norm.type = 8;
               norm.data = test::random_blocks(weight_type::q8_0, 64, 1);
             }),
             "a vector is stored as Q8_0"));
  CHECK(says(fault_after(
                 [](auto& d) {
                   d.erase_tensor("blk.0.attn_q.bias");
                   d.place_tensors();
                 },
                 errc::model_format, architecture::qwen2),
             "\"blk.0.attn_q.bias\" is missing"));
}

TEST_CASE("an output matrix of its own is used") {
  auto draft = test::small_gguf();
  draft.tensors.push_back({"output.weight", {64, 12}, 0, 0, test::random_blocks(weight_type::f32, 768, 99)});
  draft.place_tensors();
  const auto opened = open(draft);
  REQUIRE(opened);
  CHECK_FALSE(opened->weights.shape.tied_output);
  CHECK(opened->weights.output.data != opened->weights.token_embedding.data);
}

TEST_CASE("tokenizer metadata that are missing or at odds are refused by name") {
  CHECK(says(fault_after([](auto& d) { d.set_text("tokenizer.ggml.model", "llama"); }, errc::unsupported),
             "tokenizer.ggml.model at byte "));
  CHECK(says(fault_after([](auto& d) { d.set_text("tokenizer.ggml.pre", "chatglm"); }, errc::unsupported),
             "\"chatglm\" is not supported"));
  CHECK(says(fault_after([](auto& d) { d.erase("tokenizer.ggml.pre"); }), "tokenizer.ggml.pre: the file has no such key"));
  CHECK(says(fault_after([](auto& d) { d.erase("tokenizer.ggml.tokens"); }), "tokenizer.ggml.tokens: the file has no tokens"));
  CHECK(says(fault_after([](auto& d) { d.set_i32s("tokenizer.ggml.token_type", {1, 1}); }), "2 types for 10 tokens"));
  CHECK(says(fault_after([](auto& d) {
               d.set_i32s("tokenizer.ggml.token_type", {1, 1, 1, 1, 1, 3, 3, 3, 4, 7});
             }),
             "token type 7 is outside 1..6"));
  for (const char* merge : {"ab", " b", "a ", "a b c", ""})
    CHECK(says(fault_after([&](auto& d) { d.set_texts("tokenizer.ggml.merges", {"a b", merge}); }), "merge 1, "));
  CHECK(says(fault_after([](auto& d) { d.set_u32("tokenizer.ggml.eos_token_id", 10); }), "10 is outside -1..9"));
  CHECK(says(fault_after([](auto& d) { d.set_u32("tokenizer.ggml.eot_token_id", 99); }), "eot_token_id at byte "));
  CHECK(says(fault_after([](auto& d) {
               d.set_texts("tokenizer.ggml.tokens", std::vector<std::string>(13, "x"));
               d.erase("tokenizer.ggml.token_type");
             }),
             "the tokenizer has 13 tokens, the embedding only 12 rows"));
  CHECK(says(fault_after([](auto& d) {
               d.set_bool("tokenizer.ggml.add_bos_token", 1);
               d.erase("tokenizer.ggml.bos_token_id");
             }),
             "adds a bos token but does not say which"));
}
