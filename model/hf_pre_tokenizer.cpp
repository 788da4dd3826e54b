#include <array>

#include "model/hf_tokenizer.hpp"
#include "model/model_file_checks.hpp"

namespace troupe {

namespace {

// The patterns as the families' own files spell them: facts to compare with, never run.
constexpr std::string_view qwen2_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view llama3_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view gpt2_pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

enum class step { split_qwen2, split_llama3, split_gpt2, digits, byte_level, byte_level_gpt2, other };

step split_step(hf_fields& part) {
  auto pattern = part.nested("pattern");
  if (!pattern || part.text("behavior", "") != "Isolated" || part.boolean("invert", false))
    return step::other;
  const std::string regex = pattern->text("Regex", "");
  if (regex == qwen2_pattern)
    return step::split_qwen2;
  if (regex == llama3_pattern)
    return step::split_llama3;
  return regex == gpt2_pattern ? step::split_gpt2 : step::other;
}

step step_of(hf_fields& part) {
  const std::string type = part.text("type", "");
  if (type == "Split")
    return split_step(part);
  if (type == "Digits")
    return part.boolean("individual_digits", false) ? step::digits : step::other;
  if (type == "ByteLevel" && !part.boolean("add_prefix_space", true))
    return part.boolean("use_regex", true) ? step::byte_level_gpt2 : step::byte_level;
  return step::other;
}

struct recipe {
  pre_tokenizer pre;
  std::array<step, 2> steps; // the second is `other` where one step is all
};
constexpr std::array<recipe, 5> recipes{{
    {pre_tokenizer::qwen2, {step::split_qwen2, step::byte_level}},
    {pre_tokenizer::llama_bpe, {step::split_llama3, step::byte_level}},
    {pre_tokenizer::gpt2, {step::byte_level_gpt2, step::other}},
    {pre_tokenizer::gpt2, {step::split_gpt2, step::byte_level}},
    {pre_tokenizer::smollm, {step::digits, step::byte_level_gpt2}},
}};

} // namespace

pre_tokenizer hf_pre_tokenizer(hf_fields& tokenizer) {
  std::array<step, 2> found{step::other, step::other};
  std::size_t count = 0;
  auto outer = tokenizer.nested("pre_tokenizer");
  if (outer && outer->text("type", "") == "Sequence") {
    simdjson::dom::array parts;
    if (const auto list = outer->find("pretokenizers"); list && !list->get(parts))
      for (const auto part : parts) {
        simdjson::dom::object object;
        if (part.get(object) || count == found.size()) {
          count = found.size() + 1;
          break;
        }
        hf_fields fields("pre_tokenizer", object);
        found[count++] = step_of(fields);
      }
  } else if (outer) {
    found[count++] = step_of(*outer);
  }
  for (const auto& known : recipes) {
    const std::size_t steps = known.steps[1] == step::other ? 1 : 2;
    if (count == steps && found == known.steps)
      return known.pre;
  }
  tokenizer.fail_at("pre_tokenizer", "is none of those of qwen2, llama-bpe, gpt-2 and smollm", errc::unsupported);
  return pre_tokenizer::qwen2;
}

bool hf_normalizes_nfc(hf_fields& tokenizer) {
  auto normalizer = tokenizer.nested("normalizer");
  if (!normalizer)
    return false;
  std::string type = normalizer->text("type", "");
  simdjson::dom::array parts;
  const auto list = normalizer->find("normalizers");
  if (type == "Sequence" && list && !list->get(parts)) {
    if (parts.size() == 0)
      return false;
    std::string_view inner;
    if (parts.size() == 1 && !parts.at(0).at_key("type").get(inner))
      type = std::string(inner);
  }
  if (type != "NFC")
    tokenizer.fail_at("normalizer", in_quotes(type) + " is not supported; NFC or none is", errc::unsupported);
  return true;
}

} // namespace troupe
