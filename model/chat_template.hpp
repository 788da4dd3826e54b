// Renders a conversation into token ids. Which template: recognised from the model's own Jinja text, or named by the user.
//
// Injection-proof by construction: a template emits alternating literal control ids and text runs; text (template words plus
// message bodies) is encoded with added-token matching off, one run between two control tokens, which keeps exact parity with
// Hugging Face on benign text.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/chat.hpp"
#include "base/result.hpp"
#include "model/tokenizer.hpp"

namespace troupe {

enum class template_kind { qwen3, chatml, qwen2_5, llama3 };
std::string_view name_of(template_kind kind) noexcept;
std::optional<template_kind> template_named(std::string_view name) noexcept;

// errc::unsupported with a clear line when the text is none that we know.
result<template_kind> recognise_template(std::string_view jinja_text);

struct render_options {
  std::vector<std::string> tools;       // JSON text each, as the client sent it
  bool add_generation_prompt = true;
  std::optional<bool> enable_thinking;  // qwen3 only
};

struct rendered_prompt {
  std::vector<token_id> tokens;
  std::string text;            // the same, for tests and /render; not for tokenising
  bool thinking_open = false;  // the answer starts inside a think block
};

class chat_template {
public:
  // errc::model_format when the tokenizer lacks a control token that the template needs.
  static result<chat_template> create(template_kind kind, std::shared_ptr<const tokenizer> tokens);
  result<rendered_prompt> render(const std::vector<chat_message>& messages, const render_options& options) const;
  template_kind kind() const noexcept { return kind_; }
  bool thinks() const noexcept { return kind_ == template_kind::qwen3; }

private:
  template_kind kind_ = template_kind::qwen3;
  std::shared_ptr<const tokenizer> tokens_;
};

} // namespace troupe
