#include "model/hf_tokenizer.hpp"

#include "model/model_file_checks.hpp"

namespace troupe {

namespace {

// Puts `text` at `id`, growing the table; false where another text stands there.
bool place(tokenizer_data& out, std::int64_t id, std::string_view text, token_kind kind) {
  const auto at = static_cast<std::size_t>(id);
  if (at >= out.tokens.size()) {
    out.tokens.resize(at + 1);
    out.kinds.resize(at + 1, token_kind::unused);
  }
  if (out.kinds[at] != token_kind::unused && out.tokens[at] != text)
    return false;
  out.tokens[at] = std::string(text);
  out.kinds[at] = kind;
  return true;
}

void read_vocabulary(hf_fields& model, tokenizer_data& out, int rows) {
  simdjson::dom::object vocabulary;
  const auto element = model.find("vocab");
  if (!element || element->get(vocabulary))
    return model.fail_at("vocab", "is not an object of token to id");
  for (const auto field : vocabulary) {
    std::int64_t id = 0;
    if (field.value.get(id) || id < 0 || id >= rows)
      return model.fail_at("vocab", "the id of " + in_quotes(field.key) + " is not in 0.." + std::to_string(rows - 1) +
                                        ", the rows of the embedding");
    if (static_cast<std::size_t>(id) < out.tokens.size() && out.kinds[static_cast<std::size_t>(id)] != token_kind::unused)
      return model.fail_at("vocab", "id " + std::to_string(id) + " stands twice");
    place(out, id, field.key, token_kind::normal);
  }
}

// "left right" or ["left", "right"].
bool read_merge(simdjson::dom::element item, tokenizer_data& out) {
  std::string_view left, right;
  if (!item.get(left)) {
    const auto space = left.find(' ');
    if (space == std::string_view::npos || left.find(' ', space + 1) != std::string_view::npos)
      return false;
    right = left.substr(space + 1);
    left = left.substr(0, space);
  } else {
    simdjson::dom::array pair;
    if (item.get(pair) || pair.size() != 2 || pair.at(0).get(left) || pair.at(1).get(right))
      return false;
  }
  if (left.empty() || right.empty())
    return false;
  out.merges.emplace_back(left, right);
  return true;
}

void read_merges(hf_fields& model, tokenizer_data& out) {
  simdjson::dom::array merges;
  const auto element = model.find("merges");
  if (!element || element->get(merges))
    return model.fail_at("merges", "is not an array");
  for (const auto item : merges)
    if (!read_merge(item, out))
      return model.fail_at("merges", "merge " + std::to_string(out.merges.size()) + " is not two tokens");
}

void read_model(hf_fields& model, tokenizer_data& out, int rows) {
  const std::string type = model.text("type", "BPE");
  if (type != "BPE")
    return model.fail_at("type", in_quotes(type) + " is not supported; BPE is", errc::unsupported);
  if (model.boolean("byte_fallback", false))
    return model.fail_at("byte_fallback", "is not supported", errc::unsupported);
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (!model.text(key, "").empty())
      return model.fail_at(key, "is not supported", errc::unsupported);
  if (model.number("dropout", 0.0, 1.0, 0.0) != 0.0)
    return model.fail_at("dropout", "is not supported", errc::unsupported);
  out.ignore_merges = model.boolean("ignore_merges", false);
  read_vocabulary(model, out, rows);
  if (!model.failed())
    read_merges(model, out);
}

void read_added(hf_fields& file, tokenizer_data& out, int rows) {
  simdjson::dom::array added;
  const auto element = file.find("added_tokens");
  if (!element)
    return;
  if (element->get(added))
    return file.fail_at("added_tokens", "is not an array");
  for (const auto item : added) {
    simdjson::dom::object object;
    if (item.get(object))
      return file.fail_at("added_tokens", "an entry is not an object");
    hf_fields token("tokenizer.json: added_tokens", object);
    const auto id = token.integer("id", 0, rows - 1);
    const std::string content = token.text("content");
    const bool special = token.boolean("special", false);
    for (const char* flag : {"lstrip", "rstrip", "single_word"})
      if (token.boolean(flag, false))
        token.fail_at(flag, "is not supported (token " + in_quotes(content) + ")", errc::unsupported);
    if (!token.failed() && content.empty())
      token.fail_at("content", "is empty");
    if (!token.failed() && !place(out, id, content, special ? token_kind::control : token_kind::user_defined))
      token.fail_at("id", std::to_string(id) + " of " + in_quotes(content) + " belongs to another token");
    file.adopt(token);
    if (file.failed())
      return;
  }
}

token_id added_named(const tokenizer_data& tokens, std::string_view text) {
  for (std::size_t i = 0; i < tokens.tokens.size(); ++i)
    if (tokens.kinds[i] != token_kind::unused && tokens.tokens[i] == text)
      return static_cast<token_id>(i);
  return -1;
}

// A TemplateProcessing step that begins with a special token adds that token before every text.
void read_template_step(simdjson::dom::element step, tokenizer_data& out) {
  std::string_view type, name;
  if (step.at_key("type").get(type) || type != "TemplateProcessing")
    return;
  simdjson::dom::array single;
  if (step.at_key("single").get(single) || single.size() == 0)
    return;
  if (single.at(0).at_key("SpecialToken").at_key("id").get(name))
    return;
  out.bos = added_named(out, name);
  out.add_bos = out.bos >= 0;
}

void read_post_processor(hf_fields& file, tokenizer_data& out) {
  const auto step = file.find("post_processor");
  if (!step)
    return;
  read_template_step(*step, out);
  simdjson::dom::array steps;
  if (!step->at_key("processors").get(steps))
    for (const auto inner : steps)
      read_template_step(inner, out);
}

// A token's text, given as a string or as an object with "content".
std::string named_text(hf_fields& config, std::string_view key) {
  const auto element = config.find(key);
  if (!element)
    return "";
  std::string_view text;
  if (element->get(text) && element->at_key("content").get(text))
    config.fail_at(key, "is neither a string nor an object with content");
  return std::string(text);
}

} // namespace

result<tokenizer_data> hf_tokenizer(const json_document& document, int vocabulary) {
  hf_fields file(document);
  tokenizer_data out;
  out.nfc = hf_normalizes_nfc(file);
  out.pre = hf_pre_tokenizer(file);
  if (auto model = file.nested("model")) {
    read_model(*model, out, vocabulary);
    file.adopt(*model);
  } else {
    file.fail_at("model", "is missing");
  }
  if (!file.failed())
    read_added(file, out, vocabulary);
  if (!file.failed())
    read_post_processor(file, out);
  if (file.failed())
    return file.fault();
  return out;
}

void hf_named_tokens(hf_fields& config, tokenizer_data& tokens) {
  const auto look_up = [&](const char* key, token_id& id) {
    const std::string text = named_text(config, key);
    if (text.empty())
      return;
    const token_id found = added_named(tokens, text);
    if (found < 0)
      config.fail_at(key, in_quotes(text) + " is no token of tokenizer.json");
    else
      id = found;
  };
  const bool adds_bos = tokens.add_bos;
  if (!adds_bos)
    look_up("bos_token", tokens.bos);
  look_up("eos_token", tokens.eos);
  look_up("pad_token", tokens.padding);
  tokens.add_bos = adds_bos || (config.boolean("add_bos_token", false) && tokens.bos >= 0);
}

std::string hf_chat_template(hf_fields& config) {
  const auto element = config.find("chat_template");
  if (!element)
    return "";
  std::string_view text;
  if (!element->get(text))
    return std::string(text);
  simdjson::dom::array list;
  if (element->get(list)) {
    config.fail_at("chat_template", "is neither a string nor a list");
    return "";
  }
  std::optional<std::string_view> chosen;
  for (const auto item : list) {
    std::string_view name, body;
    if (item.at_key("name").get(name) || item.at_key("template").get(body)) {
      config.fail_at("chat_template", "an entry has no name and template");
      return "";
    }
    if (!chosen || name == "default")
      chosen = body;
    if (name == "default")
      break;
  }
  return std::string(chosen.value_or(""));
}

} // namespace troupe
