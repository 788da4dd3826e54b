#include "model/model_file_checks.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "config/limits.hpp"

namespace troupe {

namespace {

// The names by which the families that we read end a turn or a text.
constexpr std::array<std::string_view, 5> end_names{"<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end_of_text|>",
                                                    "<|eom_id|>"};

bool in_vocabulary(token_id token, std::size_t size) noexcept {
  return token >= 0 && static_cast<std::size_t>(token) < size;
}

} // namespace

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text.substr(0, 80))
    out += static_cast<unsigned char>(c) < 32 || c == 127 ? '?' : c;
  return out + (text.size() > 80 ? "...\"" : "\"");
}

result<void> check_shape(const hyperparameters& shape) {
  if (shape.heads % shape.kv_heads != 0)
    return fail(errc::model_format, std::to_string(shape.heads) + " attention heads cannot share " +
                                        std::to_string(shape.kv_heads) + " key/value heads evenly");
  if (shape.head_dim % 2 != 0)
    return fail(errc::model_format, "a head dimension of " + std::to_string(shape.head_dim) + " is odd, RoPE turns pairs");
  if (shape.q_width() > limits::width_max)
    return fail(errc::model_format, std::to_string(shape.heads) + " heads of " + std::to_string(shape.head_dim) +
                                        " are wider than " + std::to_string(limits::width_max));
  return {};
}

result<void> check_tokenizer(const tokenizer_data& tokens, int vocabulary) {
  const std::size_t size = tokens.tokens.size();
  if (size == 0)
    return fail(errc::model_format, "the tokenizer has no tokens");
  if (size > static_cast<std::size_t>(vocabulary))
    return fail(errc::model_format, "the tokenizer has " + std::to_string(size) + " tokens, the embedding only " +
                                        std::to_string(vocabulary) + " rows");
  if (tokens.kinds.size() != size)
    return fail(errc::model_format, "the tokenizer has " + std::to_string(size) + " tokens and " +
                                        std::to_string(tokens.kinds.size()) + " token types");
  const std::pair<const char*, token_id> named[] = {{"bos", tokens.bos}, {"eos", tokens.eos}, {"padding", tokens.padding}};
  for (const auto& [name, id] : named)
    if (id != -1 && !in_vocabulary(id, size))
      return fail(errc::model_format, std::string(name) + " token id " + std::to_string(id) + " is outside the vocabulary of " +
                                          std::to_string(size));
  if (tokens.add_bos && tokens.bos < 0)
    return fail(errc::model_format, "the tokenizer adds a bos token but does not say which");
  for (std::size_t i = 0; i < tokens.merges.size(); ++i)
    if (tokens.merges[i].first.empty() || tokens.merges[i].second.empty())
      return fail(errc::model_format, "merge " + std::to_string(i) + " has an empty side");
  return {};
}

result<void> check_sampling(const sampling_params& sampling) {
  const auto refuse = [](const char* name, double value, const char* range) {
    return fail(errc::model_format, std::string("sampling default ") + name + " " + std::to_string(value) + " is not " + range);
  };
  if (!(sampling.temperature >= 0.0f && sampling.temperature <= 100.0f))
    return refuse("temperature", sampling.temperature, "in [0, 100]");
  if (sampling.top_k < 0)
    return refuse("top_k", sampling.top_k, "0 or more");
  if (!(sampling.top_p > 0.0f && sampling.top_p <= 1.0f))
    return refuse("top_p", sampling.top_p, "in (0, 1]");
  if (!(sampling.min_p >= 0.0f && sampling.min_p < 1.0f))
    return refuse("min_p", sampling.min_p, "in [0, 1)");
  if (!(sampling.repetition_penalty > 0.0f && sampling.repetition_penalty <= 100.0f))
    return refuse("repetition_penalty", sampling.repetition_penalty, "in (0, 100]");
  return {};
}

result<void> complete_end_tokens(model_file& file) {
  const auto& tokens = file.tokenizer;
  auto& ends = file.end_tokens;
  ends.push_back(tokens.eos);
  for (std::size_t i = 0; i < tokens.tokens.size(); ++i)
    if (tokens.kinds[i] == token_kind::control &&
        std::find(end_names.begin(), end_names.end(), tokens.tokens[i]) != end_names.end())
      ends.push_back(static_cast<token_id>(i));
  std::erase_if(ends, [&](token_id id) { return !in_vocabulary(id, tokens.tokens.size()); });
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  if (ends.size() > static_cast<std::size_t>(limits::end_tokens_max))
    return fail(errc::model_format, "the model names " + std::to_string(ends.size()) + " end tokens; at most " +
                                        std::to_string(limits::end_tokens_max) + " are allowed");
  return {};
}

} // namespace troupe
