// A tokenizer of the 256 bytes, a few merges and every control token that a chat template may need; no file.
#pragma once
#include <initializer_list>
#include <string_view>

#include "model/tokenizer.hpp"
#include "model/tokenizer_spelling.hpp"

namespace troupe::testing {

inline void add_token(tokenizer_data& data, std::string text, token_kind kind) {
  data.tokens.push_back(std::move(text));
  data.kinds.push_back(kind);
}

// Byte b is token b; `merges` follow, as pairs of plain text.
inline tokenizer_data byte_data(std::initializer_list<std::pair<std::string_view, std::string_view>> merges = {}) {
  tokenizer_data data;
  for (int b = 0; b < 256; ++b)
    add_token(data, spell(std::string(1, static_cast<char>(b))), token_kind::normal);
  for (const auto& [left, right] : merges) {
    data.merges.emplace_back(spell(left), spell(right));
    add_token(data, spell(left) + spell(right), token_kind::normal);
  }
  return data;
}

inline std::shared_ptr<const tokenizer> small_tokenizer() {
  auto data = byte_data({{" ", "a"}, {"i", "n"}, {"in", "g"}, {"\n", "\n"}, {"t", "h"}, {"th", "e"}});
  for (const char* name :
       {"<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|im_start|>", "<|im_end|>"})
    add_token(data, name, token_kind::control);
  for (const char* name : {"<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"})
    add_token(data, name, token_kind::user_defined);
  auto built = tokenizer::build(std::move(data));
  return built ? built.value() : nullptr;
}

} // namespace troupe::testing
