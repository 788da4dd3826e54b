// Byte-level BPE, exact to Hugging Face's ids. Immutable after building: any number of threads may encode and decode.
//
// Text and control are kept apart: encode() never produces an added token, whatever the text says; only the chat template
// places those, as ids (model/chat_template.hpp).
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/tokenizer_data.hpp"

namespace troupe {

class tokenizer {
public:
  // errc::model_format where the data contradicts itself: sizes differ, ids out of range, a token stands there twice, a needed
  // byte has no token, a merge names what is no normal token.
  static result<std::shared_ptr<const tokenizer>> build(tokenizer_data data);
  ~tokenizer();

  // Appends the ids of `text` (any bytes; invalid UTF-8 keeps its bytes). Never matches added tokens. Bytes for which the
  // vocabulary has no token are dropped, as Hugging Face does; only control characters and bytes that text never has can
  // lack one (build() sees to that).
  void encode(std::string_view text, std::vector<token_id>& out) const;
  std::vector<token_id> encode(std::string_view text) const;

  // As Hugging Face's encode(add_special_tokens=False): added tokens inside `text` are matched. For trusted text only
  // (tests, `troupe tokenize --special`, raw completions' prompts where the operator allows it).
  std::vector<token_id> encode_with_added_tokens(std::string_view text) const;

  // The first added token that stands in `text` at or after `from`, the longest at its place. length 0: there is none, and
  // begin is the text's end.
  struct added_match {
    std::size_t begin = 0;
    std::size_t length = 0;
    token_id id = -1;
  };
  added_match find_added(std::string_view text, std::size_t from = 0) const noexcept;

  // The bytes of one token: text for normal and user-defined tokens, its name for control tokens. Unknown ids give "".
  std::string_view bytes_of(token_id token) const noexcept;
  token_kind kind_of(token_id token) const noexcept; // unused for ids outside the vocabulary
  // The id of an added token's exact text, or -1.
  token_id added_token(std::string_view text) const noexcept;

  // Concatenated bytes; control tokens are left out unless asked for.
  std::string decode(const std::vector<token_id>& tokens, bool keep_control = false) const;

  // No token of text stands for more bytes: so many tokens at least are bytes / this.
  std::size_t longest_token_bytes() const noexcept;

  int size() const noexcept; // ids in use; rows of the embedding beyond it are never sampled
  token_id bos() const noexcept;
  bool adds_bos() const noexcept;
  token_id eos() const noexcept;

private:
  struct tables;
  explicit tokenizer(std::unique_ptr<tables> t);
  std::unique_ptr<tables> tables_;
};

// Turns a stream of token bytes into text that never splits a UTF-8 character: push() returns what is complete; invalid
// bytes become U+FFFD exactly as decoding the whole would give. Bytes held back: at most 3.
class utf8_stream {
public:
  std::string push(std::string_view bytes);
  std::string finish(); // what is left, as U+FFFD

private:
  std::string held_;
};

} // namespace troupe
