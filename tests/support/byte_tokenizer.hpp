// A tokenizer for tests: id i < 256 is the byte i, then the added tokens below. Every text is its bytes, so tests can say which
// token stands for what.
#pragma once
#include <memory>
#include <string>

#include "model/tokenizer.hpp"

namespace troupe::test {

namespace added {
inline constexpr token_id im_start = 256;
inline constexpr token_id im_end = 257;
inline constexpr token_id think_open = 258;
inline constexpr token_id think_close = 259;
inline constexpr token_id tool_open = 260;
inline constexpr token_id tool_close = 261;
inline constexpr token_id response_open = 262;
inline constexpr token_id response_close = 263;
inline constexpr int count = 264;
} // namespace added

// GPT-2's spelling of a byte as a printable character.
inline std::string spelling_of_byte(int byte) {
  const auto printable = [](int b) { return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || (b >= 174 && b <= 255); };
  int point = byte;
  if (!printable(byte)) {
    point = 256;
    for (int b = 0; b < byte; ++b)
      point += printable(b) ? 0 : 1;
  }
  if (point < 0x80)
    return std::string(1, static_cast<char>(point));
  return {static_cast<char>(0xc0 | point >> 6), static_cast<char>(0x80 | (point & 0x3f))};
}

inline std::shared_ptr<const tokenizer> byte_tokenizer() {
  static const auto built = [] {
    tokenizer_data data;
    for (int byte = 0; byte < 256; ++byte) {
      data.tokens.push_back(spelling_of_byte(byte));
      data.kinds.push_back(token_kind::normal);
    }
    const auto add = [&data](const char* text, token_kind kind) {
      data.tokens.emplace_back(text);
      data.kinds.push_back(kind);
    };
    add("<|im_start|>", token_kind::control);
    add("<|im_end|>", token_kind::control);
    add("<think>", token_kind::user_defined);
    add("</think>", token_kind::user_defined);
    add("<tool_call>", token_kind::user_defined);
    add("</tool_call>", token_kind::user_defined);
    add("<tool_response>", token_kind::user_defined);
    add("</tool_response>", token_kind::user_defined);
    data.eos = added::im_end;
    return tokenizer::build(std::move(data)).value();
  }();
  return built;
}

} // namespace troupe::test
