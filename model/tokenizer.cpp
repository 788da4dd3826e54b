#include "model/tokenizer.hpp"

#include <algorithm>

#include "model/pre_tokenizer.hpp"
#include "model/tokenizer_tables.hpp"
#include "model/unicode_nfc.hpp"

namespace troupe {
namespace {

std::size_t index(token_id id) noexcept {
  return static_cast<std::size_t>(id);
}

} // namespace

tokenizer::tokenizer(std::unique_ptr<tables> t) : tables_(std::move(t)) {}

tokenizer::~tokenizer() = default;

// A word of the vocabulary is taken whole once merging its bytes was seen to give it. `word`: the piece's own slot, or null.
void tokenizer::tables::encode_piece(const char* begin, const char* end, word_table::slot* word, merge_table::scratch& work,
                                     std::vector<token_id>& out) const {
  if (word != nullptr && word->state() == word_table::whole::yes) {
    out.push_back(word->id());
    return;
  }
  const std::size_t first = out.size();
  out.resize(first + static_cast<std::size_t>(end - begin));
  std::size_t count = 0;
  for (const char* p = begin; p < end; ++p)
    if (const token_id id = byte_ids[static_cast<unsigned char>(*p)]; id >= 0)
      out[first + count++] = id;
  count = merges.apply(out.data() + first, count, work);
  out.resize(first + count);
  if (word != nullptr && word->state() == word_table::whole::unknown)
    word->learn(count == 1 && out[first] == word->id());
}

// Encodes piece by piece between the places where merging cannot cross.
void tokenizer::tables::encode_cut(const char* begin, const char* end, merge_table::scratch& work,
                                   std::vector<token_id>& out) const {
  const char* piece = begin;
  auto left = unicode::decode_utf8(begin, end);
  for (const char* p = begin + left.bytes; p < end;) {
    const auto right = unicode::decode_utf8(p, end);
    if (left.valid && right.valid &&
        !cuts.joinable(left.code, right.code, static_cast<unsigned char>(p[-1]), static_cast<unsigned char>(*p))) {
      encode_piece(piece, p, words->find(piece, static_cast<std::size_t>(p - piece)), work, out);
      piece = p;
    }
    left = right;
    p += right.bytes;
  }
  encode_piece(piece, end, words->find(piece, static_cast<std::size_t>(end - piece)), work, out);
}

void tokenizer::tables::encode_pre_token(const char* begin, const char* end, merge_table::scratch& work,
                                         std::vector<token_id>& out) const {
  const auto length = static_cast<std::size_t>(end - begin);
  if (length == 1) {
    if (const token_id id = byte_ids[static_cast<unsigned char>(*begin)]; id >= 0)
      out.push_back(id);
    return;
  }
  word_table::slot* const word = words->find(begin, length);
  if (word != nullptr && ignore_merges)
    out.push_back(word->id());
  else if (word == nullptr && std::any_of(begin, end, [](char c) { return (static_cast<unsigned char>(c) & 0x80) != 0; }))
    encode_cut(begin, end, work, out);
  else
    encode_piece(begin, end, word, work, out);
}

void tokenizer::encode(std::string_view text, std::vector<token_id>& out) const {
  std::string normalised;
  if (tables_->nfc && unicode::may_need_nfc(text)) {
    normalised = unicode::to_nfc(text);
    text = normalised;
  }
  merge_table::scratch work;
  for_each_pre_token(tables_->pre, text.data(), text.data() + text.size(),
                     [&](const char* begin, const char* end) { tables_->encode_pre_token(begin, end, work, out); });
}

std::vector<token_id> tokenizer::encode(std::string_view text) const {
  std::vector<token_id> out;
  encode(text, out);
  return out;
}

std::vector<token_id> tokenizer::encode_with_added_tokens(std::string_view text) const {
  std::vector<token_id> out;
  for (std::size_t from = 0;;) {
    const auto match = tables_->added.find(text, from);
    encode(text.substr(from, match.begin - from), out);
    if (match.length == 0)
      return out;
    out.push_back(match.id);
    from = match.begin + match.length;
  }
}

tokenizer::added_match tokenizer::find_added(std::string_view text, std::size_t from) const noexcept {
  return tables_->added.find(text, from);
}

std::string_view tokenizer::bytes_of(token_id token) const noexcept {
  return kind_of(token) == token_kind::unused ? std::string_view() : tables_->bytes[index(token)];
}

token_kind tokenizer::kind_of(token_id token) const noexcept {
  return token < 0 || index(token) >= tables_->kinds.size() ? token_kind::unused : tables_->kinds[index(token)];
}

token_id tokenizer::added_token(std::string_view text) const noexcept {
  return tables_->added.id_of(text);
}

std::string tokenizer::decode(const std::vector<token_id>& tokens, bool keep_control) const {
  std::string out;
  for (const token_id token : tokens)
    if (keep_control || kind_of(token) != token_kind::control)
      out += bytes_of(token);
  return out;
}

std::size_t tokenizer::longest_token_bytes() const noexcept {
  return tables_->longest;
}

int tokenizer::size() const noexcept {
  return tables_->size;
}

token_id tokenizer::bos() const noexcept {
  return tables_->bos;
}

bool tokenizer::adds_bos() const noexcept {
  return tables_->adds_bos;
}

token_id tokenizer::eos() const noexcept {
  return tables_->eos;
}

} // namespace troupe
