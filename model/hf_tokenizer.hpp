// tokenizer.json and tokenizer_config.json of a Hugging Face folder as tokenizer_data. Byte-level BPE only; normaliser,
// pre-tokeniser and model must be exactly ones that we know, anything else is refused with a line that names the part.
#pragma once
#include "model/hf_json.hpp"
#include "model/tokenizer_data.hpp"

namespace troupe {

// `vocabulary`: rows of the embedding; an id at or beyond it is refused.
result<tokenizer_data> hf_tokenizer(const json_document& tokenizer, int vocabulary);

// bos, eos, padding and add_bos_token out of tokenizer_config.json, which names tokens by their text.
void hf_named_tokens(hf_fields& tokenizer_config, tokenizer_data& tokens);

// The template text: a string, or the one named "default" of a list, or the list's first. Empty where there is none.
std::string hf_chat_template(hf_fields& tokenizer_config);

// Parts of it, each a file.
pre_tokenizer hf_pre_tokenizer(hf_fields& tokenizer);
bool hf_normalizes_nfc(hf_fields& tokenizer);

} // namespace troupe
