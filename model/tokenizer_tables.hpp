// What a built tokenizer consists of. Immutable after build() but for what the word table learns about itself.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/tokenizer.hpp"
#include "model/tokenizer_added.hpp"
#include "model/tokenizer_cuts.hpp"
#include "model/tokenizer_merges.hpp"
#include "model/tokenizer_words.hpp"

namespace troupe {

struct tokenizer::tables {
  pre_tokenizer pre = pre_tokenizer::qwen2;
  bool nfc = false;
  bool ignore_merges = false;
  bool adds_bos = false;
  token_id bos = -1;
  token_id eos = -1;
  int size = 0;
  std::size_t longest = 1; // bytes of a normal token

  std::string arena;                   // all tokens' bytes, end to end
  std::vector<std::string_view> bytes; // by id, into arena
  std::vector<token_kind> kinds;       // by id
  std::array<token_id, 256> byte_ids;  // the token of each single byte; -1: none, the byte is dropped
  std::unique_ptr<word_table> words;   // normal tokens
  merge_table merges;
  cut_table cuts; // of what merging can give
  added_tokens added;

  result<void> take_tokens(const tokenizer_data& data);
  result<void> take_merges(const tokenizer_data& data);
  void encode_pre_token(const char* begin, const char* end, merge_table::scratch& work, std::vector<token_id>& out) const;
  void encode_piece(const char* begin, const char* end, word_table::slot* word, merge_table::scratch& work,
                    std::vector<token_id>& out) const;
  void encode_cut(const char* begin, const char* end, merge_table::scratch& work, std::vector<token_id>& out) const;
};

} // namespace troupe
