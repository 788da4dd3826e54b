// Checks a tokenizer's data and turns it into tables. The data is untrusted: it comes from a model file.
#include <optional>

#include "config/limits.hpp"
#include "model/tokenizer.hpp"
#include "model/tokenizer_spelling.hpp"
#include "model/tokenizer_tables.hpp"

namespace troupe {
namespace {

error bad(std::string what) {
  return fail(errc::model_format, "tokenizer: " + std::move(what));
}

// Bytes without which ordinary text would be lost: everything that UTF-8 of assigned characters is made of, but for the
// control characters. Others may be missing (SmolLM2 lacks 21): Hugging Face drops such bytes, and so do we.
bool is_needed(unsigned byte) noexcept {
  return byte == '\t' || byte == '\n' || byte == '\r' || (byte >= 0x20 && byte <= 0x7E) || (byte >= 0x80 && byte <= 0xBF) ||
         (byte >= 0xC2 && byte <= 0xF0);
}

bool is_added(token_kind kind) noexcept {
  return kind == token_kind::control || kind == token_kind::user_defined;
}

std::string quoted(std::string_view text) {
  constexpr std::size_t shown_max = 64;
  return "'" + std::string(text.substr(0, shown_max)) + (text.size() > shown_max ? "...'" : "'");
}

} // namespace

result<void> tokenizer::tables::take_tokens(const tokenizer_data& data) {
  const auto total = data.tokens.size();
  if (total == 0 || total > static_cast<std::size_t>(limits::vocabulary_max))
    return bad("the vocabulary has " + std::to_string(total) + " tokens, allowed are 1 to " +
               std::to_string(limits::vocabulary_max));
  if (data.kinds.size() != total)
    return bad(std::to_string(total) + " tokens but " + std::to_string(data.kinds.size()) + " token types");
  for (const auto& [name, id] : {std::pair{"bos", data.bos}, std::pair{"eos", data.eos}, std::pair{"padding", data.padding}})
    if (id < -1 || id >= static_cast<token_id>(total))
      return bad(std::string(name) + " id " + std::to_string(id) + " is not in the vocabulary of " + std::to_string(total));

  kinds = data.kinds;
  std::vector<std::size_t> ends(total);
  std::vector<token_id> plain;
  for (std::size_t i = 0; i < total; ++i) {
    const auto id = static_cast<token_id>(i);
    if (kinds[i] == token_kind::normal) {
      const auto bytes_spelled = unspell(data.tokens[i]);
      if (bytes_spelled && !bytes_spelled->empty()) {
        plain.push_back(id);
        longest = std::max(longest, bytes_spelled->size());
      }
      arena += bytes_spelled ? *bytes_spelled : data.tokens[i]; // foreign characters: text that no input is encoded to
    } else if (is_added(kinds[i])) {
      arena += data.tokens[i];
      if (!added.add(data.tokens[i], id))
        return bad("added token " + std::to_string(i) + " " + quoted(data.tokens[i]) + " is empty or stands there twice");
    }
    if (kinds[i] != token_kind::unused)
      size = id + 1;
    ends[i] = arena.size();
  }
  added.seal();
  bytes.resize(total);
  for (std::size_t i = 0; i < total; ++i) {
    const std::size_t begin = i == 0 ? 0 : ends[i - 1];
    bytes[i] = std::string_view(arena).substr(begin, ends[i] - begin);
  }
  words = std::make_unique<word_table>(bytes, plain);
  if (const token_id twice = words->duplicate(); twice >= 0)
    return bad("token " + std::to_string(twice) + " " + quoted(data.tokens[static_cast<std::size_t>(twice)]) +
               " stands there twice");
  for (unsigned byte = 0; byte < 256; ++byte) {
    const auto letter = static_cast<char>(byte);
    byte_ids[byte] = words->id_of({&letter, 1});
    if (byte_ids[byte] >= 0)
      continue;
    if (is_needed(byte))
      return bad("the vocabulary has no token for byte " + std::to_string(byte));
    cuts.add_dropped(static_cast<unsigned char>(byte));
  }
  return {};
}

result<void> tokenizer::tables::take_merges(const tokenizer_data& data) {
  if (data.merges.size() > limits::gguf_array_items_max)
    return bad(std::to_string(data.merges.size()) + " merges exceed " + std::to_string(limits::gguf_array_items_max));
  const auto find = [this](const std::optional<std::string>& spelled_bytes) {
    return spelled_bytes ? words->id_of(*spelled_bytes) : -1;
  };
  std::vector<merge_table::rule> rules;
  rules.reserve(data.merges.size());
  for (std::size_t i = 0; i < data.merges.size(); ++i) {
    const auto& [left, right] = data.merges[i];
    const merge_table::rule rule{find(unspell(left)), find(unspell(right)), find(unspell(left + right))};
    const auto refuse = [&](const char* part, const std::string& text) {
      return bad("merge " + std::to_string(i) + ": its " + part + " " + quoted(text) + " is no normal token of the vocabulary");
    };
    if (rule.left < 0)
      return refuse("left part", left);
    if (rule.right < 0)
      return refuse("right part", right);
    if (rule.result < 0)
      return refuse("result", left + right);
    rules.push_back(rule);
    cuts.add(bytes[static_cast<std::size_t>(rule.result)]);
  }
  merges = merge_table(rules);
  return {};
}

result<std::shared_ptr<const tokenizer>> tokenizer::build(tokenizer_data data) {
  auto t = std::make_unique<tables>();
  t->pre = data.pre;
  t->nfc = data.nfc;
  t->ignore_merges = data.ignore_merges;
  t->adds_bos = data.add_bos;
  t->bos = data.bos;
  t->eos = data.eos;
  if (auto taken = t->take_tokens(data); !taken)
    return taken.fault();
  if (auto taken = t->take_merges(data); !taken)
    return taken.fault();
  if (t->adds_bos && t->bos < 0)
    return bad("a begin-of-text token is asked for but not named");
  return std::shared_ptr<const tokenizer>(new tokenizer(std::move(t)));
}

} // namespace troupe
