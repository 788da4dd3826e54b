#include <algorithm>
#include <array>

#include "config/limits.hpp"
#include "model/gguf_model.hpp"
#include "model/model_file_checks.hpp"

namespace troupe {

namespace {

struct named_pre {
  std::string_view name;
  pre_tokenizer pre;
};
// The first name of each is the one that we write.
constexpr std::array<named_pre, 9> named_pres{{
    {"qwen2", pre_tokenizer::qwen2},
    {"deepseek-r1-qwen", pre_tokenizer::qwen2},
    {"llama-bpe", pre_tokenizer::llama_bpe},
    {"llama3", pre_tokenizer::llama_bpe},
    {"llama-v3", pre_tokenizer::llama_bpe},
    {"gpt-2", pre_tokenizer::gpt2},
    {"gpt2", pre_tokenizer::gpt2},
    {"phi-2", pre_tokenizer::gpt2},
    {"smollm", pre_tokenizer::smollm},
}};

token_kind kind_numbered(std::int64_t number) noexcept {
  switch (number) {
  case 2: // unknown
  case 3: return token_kind::control;
  case 4: return token_kind::user_defined;
  case 5: return token_kind::unused;
  default: return token_kind::normal; // 1 normal, 6 byte
  }
}

void read_pre(gguf_fields& fields, tokenizer_data& out) {
  const std::string model = fields.text("tokenizer.ggml.model");
  if (!fields.failed() && model != "gpt2")
    return fields.fail_at("tokenizer.ggml.model", in_quotes(model) + " is not supported; gpt2 (byte-level BPE) is",
                          errc::unsupported);
  const std::string name = fields.text("tokenizer.ggml.pre");
  if (fields.failed())
    return;
  const auto* found =
      std::find_if(named_pres.begin(), named_pres.end(), [&](const named_pre& row) { return row.name == name; });
  if (found == named_pres.end())
    return fields.fail_at("tokenizer.ggml.pre", in_quotes(name) + " is not supported; qwen2, llama-bpe, gpt-2 and smollm are",
                          errc::unsupported);
  out.pre = found->pre;
}

void read_kinds(gguf_fields& fields, tokenizer_data& out) {
  const auto types = fields.integers("tokenizer.ggml.token_type");
  if (types.empty()) {
    out.kinds.assign(out.tokens.size(), token_kind::normal);
    return;
  }
  if (types.size() != out.tokens.size())
    return fields.fail_at("tokenizer.ggml.token_type",
                          std::to_string(types.size()) + " types for " + std::to_string(out.tokens.size()) + " tokens");
  for (const auto type : types) {
    if (type < 1 || type > 6)
      return fields.fail_at("tokenizer.ggml.token_type", "token type " + std::to_string(type) + " is outside 1..6");
    out.kinds.push_back(kind_numbered(type));
  }
}

// "left right"; a byte-level token never holds a space.
void read_merges(gguf_fields& fields, tokenizer_data& out) {
  for (const auto& merge : fields.texts("tokenizer.ggml.merges")) {
    const auto space = merge.find(' ');
    if (space == std::string::npos || space == 0 || space + 1 == merge.size() ||
        merge.find(' ', space + 1) != std::string::npos)
      return fields.fail_at("tokenizer.ggml.merges",
                            "merge " + std::to_string(out.merges.size()) + ", " + in_quotes(merge) + ", is not two tokens");
    out.merges.emplace_back(merge.substr(0, space), merge.substr(space + 1));
  }
}

} // namespace

std::string_view gguf_name_of(pre_tokenizer pre) noexcept {
  for (const auto& row : named_pres)
    if (row.pre == pre)
      return row.name;
  return "";
}

tokenizer_data gguf_tokenizer(gguf_fields& fields) {
  tokenizer_data out;
  read_pre(fields, out);
  // What the families do where the file does not say; the troupe.* keys are ours, for models whose tokenizer.json differed.
  out.nfc = fields.boolean("troupe.tokenizer.nfc", out.pre == pre_tokenizer::qwen2);
  out.ignore_merges = fields.boolean("troupe.tokenizer.ignore_merges", out.pre == pre_tokenizer::llama_bpe);
  out.add_bos = fields.boolean("tokenizer.ggml.add_bos_token", out.pre == pre_tokenizer::llama_bpe);
  out.tokens = fields.texts("tokenizer.ggml.tokens");
  if (!fields.failed() && out.tokens.empty())
    fields.fail_at("tokenizer.ggml.tokens", "the file has no tokens");
  read_kinds(fields, out);
  read_merges(fields, out);
  const auto id = [&](const char* key) {
    return static_cast<token_id>(
        fields.integer(key, -1, std::max<std::int64_t>(static_cast<std::int64_t>(out.tokens.size()) - 1, -1), -1));
  };
  out.bos = id("tokenizer.ggml.bos_token_id");
  out.eos = id("tokenizer.ggml.eos_token_id");
  out.padding = id("tokenizer.ggml.padding_token_id");
  return out;
}

sampling_params gguf_sampling(gguf_fields& fields, bool& present) {
  sampling_params out;
  const auto number = [&](const char* key, float fallback) {
    present = present || fields.has(key);
    return static_cast<float>(fields.number(key, -1e6, 1e6, fallback));
  };
  present = fields.has("general.sampling.top_k");
  out.top_k =
      static_cast<int>(std::max<std::int64_t>(0, fields.integer("general.sampling.top_k", -1, limits::vocabulary_max, 0)));
  out.temperature = number("general.sampling.temp", out.temperature);
  out.top_p = number("general.sampling.top_p", out.top_p);
  out.min_p = number("general.sampling.min_p", out.min_p);
  out.repetition_penalty = number("general.sampling.penalty_repeat", out.repetition_penalty);
  return out;
}

} // namespace troupe
