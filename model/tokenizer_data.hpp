// A tokenizer as files describe it: read from GGUF metadata or tokenizer.json, consumed by model/tokenizer.hpp.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "base/ids.hpp"

namespace troupe {

enum class pre_tokenizer { qwen2, llama_bpe, gpt2, smollm };

enum class token_kind : unsigned char {
  normal,
  control,      // special: never part of the answer's text
  user_defined, // added, but part of the text (<think>, <tool_call>)
  unused,
};

struct tokenizer_data {
  pre_tokenizer pre = pre_tokenizer::qwen2;
  bool nfc = false;                 // normalise to NFC first
  bool ignore_merges = false;       // a whole pre-token that is in the vocabulary is that token (Llama 3)
  bool add_bos = false;
  std::vector<std::string> tokens;  // index is the id; normal tokens in GPT-2's byte-to-unicode spelling, others verbatim
  std::vector<token_kind> kinds;    // same length
  std::vector<std::pair<std::string, std::string>> merges; // best rank first, in the same spelling
  token_id bos = -1;
  token_id eos = -1;
  token_id padding = -1;
};

} // namespace troupe
