// Hugging Face folders: what config.json, tokenizer.json and their companions come to, and what is refused.
#include <doctest/doctest.h>

#include <cstring>
#include <functional>

#include "base/random.hpp"
#include "gguf_draft.hpp"
#include "model/model_file.hpp"
#include "model_file_temp_folder.hpp"
#include "safetensors_draft.hpp"

using namespace troupe;
using test::hf_draft;
using test::temp_folder;

namespace {

result<model_file> open(const hf_draft& draft) {
  const temp_folder folder; // the mapping outlives the names
  draft.write(folder.path());
  return open_model(folder.path());
}

// Opens `draft` after `bend`; failing to open fails the test.
model_file opened_after(const std::function<void(hf_draft&)>& bend, architecture arch = architecture::qwen3) {
  auto draft = test::small_hf(arch);
  bend(draft);
  auto opened = open(draft);
  REQUIRE_MESSAGE(opened.has_value(), opened.fault().message);
  return std::move(*opened);
}

std::string fault_after(const std::function<void(hf_draft&)>& bend, errc code = errc::model_format,
                        architecture arch = architecture::qwen3) {
  auto draft = test::small_hf(arch);
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

constexpr const char* scaling = R"("rope_scaling": null)";
constexpr const char* normalizer = R"("normalizer": {"type": "NFC"})";

// The value of "pre_tokenizer" in the draft replaced.
void set_pre(hf_draft& d, const std::string& json) {
  auto& text = d.files["tokenizer.json"];
  const auto begin = text.find("\"pre_tokenizer\": ") + 17;
  text.replace(begin, text.find(",\n\"post_processor\"") - begin, json);
}

} // namespace

TEST_CASE("a folder of each architecture and type opens with its numbers and views") {
  for (const auto arch : {architecture::qwen3, architecture::qwen2, architecture::llama})
    for (const auto type : {weight_type::f32, weight_type::f16, weight_type::bf16}) {
      CAPTURE(name_of(arch));
      CAPTURE(info_of(type).name);
      auto draft = test::small_hf(arch, type);
      const auto opened = open(draft);
      REQUIRE_MESSAGE(opened.has_value(), opened.fault().message);
      const auto& shape = opened->weights.shape;
      CHECK(shape.arch == arch);
      CHECK(shape.layers == 2);
      CHECK(shape.hidden == 64);
      CHECK(shape.heads == 4);
      CHECK(shape.kv_heads == 2);
      CHECK(shape.head_dim == (arch == architecture::qwen3 ? 32 : 16));
      CHECK(shape.ffn == 96);
      CHECK(shape.vocabulary == 12);
      CHECK(shape.context_tokens == 512);
      CHECK(shape.rope.base == 1e6f);
      CHECK_FALSE(shape.rope.adjacent_pairs); // also for llama: only GGUF permutes
      CHECK(shape.tied_output);
      CHECK(shape.qk_norm == (arch == architecture::qwen3));
      CHECK(shape.qkv_bias == (arch == architecture::qwen2));
      CHECK(opened->format == "safetensors");
      const auto& down = opened->weights.layers[1].down;
      CHECK(down.type == type);
      CHECK(down.rows == 64);
      CHECK(down.columns == 96);
      CHECK(std::memcmp(down.data, draft.weights.named("model.layers.1.mlp.down_proj.weight").data.data(), down.bytes()) == 0);
    }
}

TEST_CASE("tokenizer, template, ends and sampling come from their files") {
  const auto file = opened_after([](auto&) {});
  CHECK(file.tokenizer.pre == pre_tokenizer::qwen2);
  CHECK(file.tokenizer.nfc);
  CHECK_FALSE(file.tokenizer.ignore_merges);
  CHECK_FALSE(file.tokenizer.add_bos);
  CHECK(file.tokenizer.tokens ==
        std::vector<std::string>{"a", "b", "c", "ab", "abc", "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>"});
  CHECK(file.tokenizer.kinds[6] == token_kind::control);
  CHECK(file.tokenizer.kinds[8] == token_kind::user_defined);
  CHECK(file.tokenizer.merges == std::vector<std::pair<std::string, std::string>>{{"a", "b"}, {"ab", "c"}});
  CHECK(file.tokenizer.bos == 5); // config.json's, as tokenizer_config.json has none
  CHECK(file.tokenizer.eos == 7);
  CHECK(file.tokenizer.padding == 5);
  CHECK(file.chat_template == "{{ messages }}");
  CHECK(file.end_tokens == std::vector<token_id>{5, 7});
  CHECK(file.has_sampling);
  CHECK(file.sampling.temperature == 0.6f);
  CHECK(file.sampling.top_p == 0.95f);
  CHECK(file.sampling.top_k == 20);
}

TEST_CASE("only config.json, tokenizer.json and the weights must be there") {
  const auto file = opened_after([](auto& d) {
    d.files.erase("tokenizer_config.json");
    d.files.erase("generation_config.json");
  });
  CHECK(file.tokenizer.eos == 7);
  CHECK(file.chat_template.empty());
  CHECK_FALSE(file.has_sampling);
  CHECK(says(fault_after([](auto& d) { d.files.erase("config.json"); }, errc::not_found), "config.json"));
  CHECK(says(fault_after([](auto& d) { d.files.erase("tokenizer.json"); }, errc::not_found), "tokenizer.json"));
  CHECK(says(fault_after([](auto& d) { d.weights.tensors.clear(); }, errc::not_found), "neither model.safetensors nor"));
}

TEST_CASE("greedy is what do_sample false means") {
  const auto file =
      opened_after([](auto& d) { d.edit("generation_config.json", "\"do_sample\": true", "\"do_sample\": false"); });
  CHECK(file.has_sampling);
  CHECK(file.sampling.temperature == 0.0f);
  const auto silent =
      opened_after([](auto& d) { d.files["generation_config.json"] = R"({"eos_token_id": 6, "temperature": null})"; });
  CHECK_FALSE(silent.has_sampling);
  CHECK(silent.end_tokens == std::vector<token_id>{5, 6, 7});
}

TEST_CASE("a template may be one of several, or a file of its own") {
  CHECK(opened_after([](auto& d) {
          d.edit("tokenizer_config.json", "\"{{ messages }}\"",
                 R"([{"name": "tool_use", "template": "T"}, {"name": "default", "template": "D"}])");
        }).chat_template == "D");
  CHECK(opened_after([](auto& d) {
          d.edit("tokenizer_config.json", "\"{{ messages }}\"", R"([{"name": "tool_use", "template": "T"}])");
        }).chat_template == "T");
  CHECK(opened_after([](auto& d) { d.files["chat_template.jinja"] = "J"; }).chat_template == "J");
  CHECK(says(fault_after([](auto& d) { d.edit("tokenizer_config.json", "\"{{ messages }}\"", "5"); }), "chat_template"));
}

TEST_CASE("RoPE scalings are read in the old and the new spelling") {
  const auto rope_after = [](const std::string& json) {
    return opened_after([&](auto& d) { d.edit("config.json", scaling, json); }).weights.shape.rope;
  };
  auto rope = rope_after(R"("rope_scaling": {"type": "linear", "factor": 2.0})");
  CHECK(rope.scaling == rope_scaling::linear);
  CHECK(rope.factor == 2.0f);
  rope = rope_after(R"("rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128})");
  CHECK(rope.scaling == rope_scaling::yarn);
  CHECK(rope.original_context == 128);
  CHECK(rope.attention_factor == 0.0f);
  rope = rope_after(R"("rope_scaling": {"rope_type": "yarn", "factor": 4, "attention_factor": 1.5, "beta_fast": 16})");
  CHECK(rope.original_context == 512); // max_position_embeddings
  CHECK(rope.attention_factor == 1.5f);
  CHECK(rope.beta_fast == 16.0f);
  rope = rope_after(R"("rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                       "original_max_position_embeddings": 256})");
  CHECK(rope.scaling == rope_scaling::llama3);
  CHECK(rope.factor == 8.0f);
  CHECK(rope.high_frequency_factor == 4.0f);
  CHECK(rope.original_context == 256);
  rope = rope_after(R"("rope_parameters": {"rope_type": "default", "rope_theta": 5000000})");
  CHECK(rope.scaling == rope_scaling::none);
  CHECK(rope.base == 5e6f);
  CHECK(
      says(fault_after([](auto& d) { d.edit("config.json", scaling, R"("rope_scaling": {"type": "dynamic", "factor": 2.0})"); },
                       errc::unsupported),
           "\"dynamic\" is not supported"));
  CHECK(says(fault_after([](auto& d) { d.edit("config.json", scaling, R"("rope_scaling": {"type": "linear"})"); }),
             "factor: is missing"));
  CHECK(says(fault_after([](auto& d) { d.edit("config.json", scaling, R"("rope_scaling": 5)"); }),
             "rope_scaling: is not an object"));
}

TEST_CASE("an untied output is used, a tied one that is stored twice is not") {
  const auto add_head = [](hf_draft& d) {
    d.weights.tensors.push_back({"lm_head.weight", "F32", {12, 64}, test::random_blocks(weight_type::f32, 768, 42)});
  };
  const auto untied = opened_after([&](auto& d) {
    add_head(d);
    d.edit("config.json", "\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false");
  });
  CHECK_FALSE(untied.weights.shape.tied_output);
  CHECK(untied.weights.output.data != untied.weights.token_embedding.data);
  const auto tied = opened_after(add_head);
  CHECK(tied.weights.shape.tied_output);
  CHECK(tied.weights.output.data == tied.weights.token_embedding.data);
  CHECK(says(
      fault_after([](auto& d) { d.edit("config.json", "\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false"); }),
      "\"lm_head.weight\" is missing"));
}

TEST_CASE("shards are found by the index") {
  auto draft = test::small_hf();
  hf_draft second = draft;
  second.weights.tensors.assign(draft.weights.tensors.begin() + 10, draft.weights.tensors.end());
  draft.weights.tensors.resize(10);
  std::string map;
  for (const auto& t : draft.weights.tensors)
    map += (map.empty() ? "\"" : ", \"") + t.name + R"(": "one.safetensors")";
  for (const auto& t : second.weights.tensors)
    map += ", \"" + t.name + R"(": "two.safetensors")";
  draft.files["one.safetensors"] = draft.weights.bytes();
  draft.files["two.safetensors"] = second.weights.bytes();
  draft.files["model.safetensors.index.json"] = R"({"metadata": {}, "weight_map": {)" + map + "}}";
  draft.weights.tensors.clear();
  const auto opened = open(draft);
  REQUIRE_MESSAGE(opened.has_value(), opened.fault().message);
  CHECK(opened->table.size() == 24);

  const auto fault = [&](const std::function<void(hf_draft&)>& bend) {
    auto bent = draft;
    bend(bent);
    const auto refused = open(bent);
    return refused ? "(opened)" : refused.fault().message;
  };
  CHECK(says(fault([](auto& d) { d.files.erase("two.safetensors"); }), "two.safetensors"));
  CHECK(says(fault([](auto& d) { d.edit("model.safetensors.index.json", "\"one.safetensors\"", "\"../one.safetensors\""); }),
             "is not a plain file name"));
  CHECK(says(fault([](auto& d) { d.edit("model.safetensors.index.json", "\"one.safetensors\"", "5"); }),
             "is not a plain file name"));
  CHECK(says(fault([](auto& d) { d.edit("model.safetensors.index.json", "model.norm.weight", "model.other"); }),
             "tensor \"model.other\" is not in \"two.safetensors\""));
  CHECK(says(fault([](auto& d) { d.files["two.safetensors"] = d.files["one.safetensors"]; }), "stands twice"));
  CHECK(says(fault([](auto& d) { d.files["model.safetensors.index.json"] = "{}"; }), "weight_map: is not an object"));
}

TEST_CASE("numbers that are missing, absurd or at odds are refused by file and field") {
  for (const char* key :
       {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "max_position_embeddings"}) {
    const std::string quoted = std::string("\"") + key + "\": ";
    CHECK(says(fault_after([&](auto& d) { d.edit("config.json", quoted, "\"x\": "); }),
               std::string("config.json: ") + key + ": is missing"));
    CHECK(says(fault_after([&](auto& d) { d.edit("config.json", quoted, quoted + "-"); }), "is outside 1.."));
    CHECK(says(fault_after([&](auto& d) { d.edit("config.json", quoted, quoted + "9999999"); }), "is outside 1.."));
  }
  CHECK(says(fault_after([](auto& d) { d.edit("config.json", "\"qwen3\"", "\"bert\""); }, errc::unsupported),
             "\"bert\" is not supported"));
  CHECK(says(fault_after([](auto& d) { d.edit("config.json", "\"silu\"", "\"gelu\""); }, errc::unsupported),
             "hidden_act: \"gelu\""));
  CHECK(says(fault_after([](auto& d) { d.edit("config.json", scaling, "\"use_sliding_window\": true"); }, errc::unsupported),
             "use_sliding_window"));
  CHECK(says(
      fault_after([](auto& d) { d.edit("config.json", scaling, "\"quantization_config\": {\"bits\": 4}"); }, errc::unsupported),
      "quantization_config"));
  CHECK(says(fault_after([](auto& d) { d.edit("config.json", "\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3"); }),
             "4 attention heads cannot share 3"));
  CHECK(says(fault_after([](auto& d) { d.edit("config.json", "\"head_dim\": 32", "\"head_dim\": 16"); }),
             "the model's numbers ask for [64, 64]"));
  CHECK(says(fault_after([](auto& d) { d.files["config.json"] = "[]"; }), "config.json: not a JSON object"));
  CHECK(says(fault_after([](auto& d) { d.files["config.json"] = "{\"a\": "; }), "config.json: not valid JSON"));
  CHECK(says(fault_after([](auto& d) { d.edit("generation_config.json", "0.95", "1.5"); }), "top_p"));
  CHECK(says(fault_after([](auto& d) { d.edit("generation_config.json", "[7, 5]", "[7, -5]"); }), "eos_token_id"));
}

TEST_CASE("a bias that we would ignore is refused") {
  CHECK(says(fault_after(
                 [](auto& d) {
                   d.weights.tensors.push_back({"model.layers.0.self_attn.o_proj.bias", "F32", {64}, std::string(256, '\0')});
                 },
                 errc::unsupported),
             "o_proj.bias\" at byte"));
  // Old files carry RoPE's frequencies, which the configuration says as well.
  opened_after([](auto& d) {
    d.weights.tensors.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", "F32", {8}, std::string(32, '\0')});
  });
}

TEST_CASE("head_dim falls back as the families' own code does") {
  CHECK(opened_after([](auto& d) { d.edit("config.json", "\"head_dim\": 16,", ""); }, architecture::llama)
            .weights.shape.head_dim == 16);
  CHECK(says(fault_after([](auto& d) { d.edit("config.json", "\"head_dim\": 32,", ""); }), "ask for [512, 64]")); // qwen3: 128
}

TEST_CASE("each family's pre-tokenizer is recognised by its structure") {
  const auto pre_after = [](const std::string& json) { return opened_after([&](auto& d) { set_pre(d, json); }).tokenizer.pre; };
  CHECK(pre_after(R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true})") ==
        pre_tokenizer::gpt2);
  CHECK(pre_after(R"({"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": true},
                      {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}]})") ==
        pre_tokenizer::smollm);
  CHECK(
      pre_after(
          R"({"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},
                      "behavior": "Isolated", "invert": false}, {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]})") ==
      pre_tokenizer::llama_bpe);
  for (const char* json : {"null", R"({"type": "Whitespace"})", R"({"type": "ByteLevel", "add_prefix_space": true})",
                           R"({"type": "Sequence", "pretokenizers": []})", R"({"type": "Sequence", "pretokenizers": [5]})",
                           R"({"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": false},
                               {"type": "ByteLevel", "add_prefix_space": false}]})"})
    CHECK(says(fault_after([&](auto& d) { set_pre(d, json); }, errc::unsupported),
               "tokenizer.json: pre_tokenizer: is none of those"));
}

TEST_CASE("normalizers other than NFC are refused") {
  CHECK_FALSE(opened_after([](auto& d) { d.edit("tokenizer.json", normalizer, "\"normalizer\": null"); }).tokenizer.nfc);
  CHECK(opened_after([](auto& d) {
          d.edit("tokenizer.json", normalizer, R"("normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}]})");
        }).tokenizer.nfc);
  CHECK(says(fault_after([](auto& d) { d.edit("tokenizer.json", "\"NFC\"", "\"Lowercase\""); }, errc::unsupported),
             "normalizer: \"Lowercase\" is not supported"));
}

TEST_CASE("merges are read as strings and as pairs") {
  const auto merges =
      opened_after([](auto& d) { d.edit("tokenizer.json", R"(["a b", "ab c"])", R"([["a", "b"], "ab c"])"); }).tokenizer.merges;
  CHECK(merges == std::vector<std::pair<std::string, std::string>>{{"a", "b"}, {"ab", "c"}});
  for (const char* bad : {R"(["ab"])", R"(["a b c"])", R"([["a"]])", R"([["a", ""]])", R"([5])"})
    CHECK(
        says(fault_after([&](auto& d) { d.edit("tokenizer.json", R"(["a b", "ab c"])", bad); }), "merge 0 is not two tokens"));
  CHECK(says(fault_after([](auto& d) { d.edit("tokenizer.json", "\"merges\"", "\"other\""); }), "merges: is not an array"));
}

TEST_CASE("a begin token comes from the post-processor or the tokenizer's configuration") {
  const auto by_template = opened_after([](auto& d) {
    d.edit("tokenizer.json", R"({"type": "ByteLevel", "add_prefix_space": false},
"decoder")",
           R"({"type": "Sequence", "processors": [{"type": "ByteLevel"}, {"type": "TemplateProcessing",
"single": [{"SpecialToken": {"id": "<|im_start|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]}]},
"decoder")");
  });
  CHECK(by_template.tokenizer.add_bos);
  CHECK(by_template.tokenizer.bos == 6);
  const auto by_flag = opened_after([](auto& d) {
    d.edit("tokenizer_config.json", "\"add_bos_token\": false, \"bos_token\": null",
           R"("add_bos_token": true, "bos_token": {"content": "<|im_start|>"})");
  });
  CHECK(by_flag.tokenizer.add_bos);
  CHECK(by_flag.tokenizer.bos == 6);
}

TEST_CASE("tokenizers that lie or are of another kind are refused by field") {
  const auto bent = [](const std::string& from, const std::string& to, errc code = errc::model_format) {
    return fault_after([&](auto& d) { d.edit("tokenizer.json", from, to); }, code);
  };
  CHECK(says(bent("\"type\": \"BPE\"", "\"type\": \"Unigram\"", errc::unsupported), "type: \"Unigram\" is not supported"));
  CHECK(says(bent("\"byte_fallback\": false", "\"byte_fallback\": true", errc::unsupported), "byte_fallback"));
  CHECK(says(bent("\"abc\": 4", "\"abc\": 12"), "the id of \"abc\" is not in 0..11"));
  CHECK(says(bent("\"abc\": 4", "\"abc\": -1"), "the id of \"abc\""));
  CHECK(says(bent("\"abc\": 4", "\"abc\": 3"), "id 3 stands twice"));
  CHECK(says(bent("\"id\": 8", "\"id\": 4"), "belongs to another token"));
  CHECK(says(bent("\"id\": 8", "\"id\": 12"), "12 is outside 0..11"));
  CHECK(says(bent("\"id\": 8, ", ""), "id: is missing"));
  CHECK(says(bent("\"lstrip\": false", "\"lstrip\": true", errc::unsupported), "lstrip"));
  CHECK(says(fault_after([](auto& d) { d.edit("tokenizer_config.json", "<|im_end|>", "<|none|>"); }),
             "eos_token: \"<|none|>\" is no token"));
}

TEST_CASE("a damaged folder opens inside its bounds or gives an error") {
  constexpr std::uint64_t seed = 4242;
  MESSAGE("seed " << seed);
  std::uint64_t counter = 0;
  const auto below = [&](std::uint64_t bound) { return random_at(seed, counter++) % bound; };
  const std::string digits = "0123456789{}[],:\"-.eE \\n";
  const char* names[] = {"config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json"};
  const temp_folder folder;
  const auto whole = test::small_hf();
  whole.write(folder.path());
  int opened_count = 0;
  for (int round = 0; round < 2000; ++round) {
    const char* name = names[below(4)];
    std::string bent = whole.files.at(name);
    for (std::uint64_t i = below(3) + 1; i > 0 && !bent.empty(); --i)
      switch (below(4)) {
      case 0: bent.resize(below(8) == 0 ? below(bent.size()) + 1 : bent.size()); break;
      case 1: bent[below(bent.size())] = static_cast<char>(below(256)); break;
      case 2: bent[below(bent.size())] = digits[below(digits.size())]; break;
      default: bent.erase(below(bent.size()), 1 + below(3)); break;
      }
    test::write_file(folder / name, bent);
    CAPTURE(round);
    CAPTURE(name);
    const auto opened = open_model(folder.path());
    test::write_file(folder / name, whole.files.at(name));
    if (!opened) {
      CHECK(opened.fault().code != errc::internal);
      CHECK(opened.fault().message.find('\n') == std::string::npos);
      continue;
    }
    ++opened_count;
    CHECK(opened->tokenizer.tokens.size() <= 12);
    for (const auto id : opened->end_tokens)
      CHECK((id >= 0 && id < 12));
  }
  CHECK(opened_count > 100);
}
