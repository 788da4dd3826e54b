// Renders a conversation into token ids. Which template: recognised from the model's own Jinja text, or named by the user.
//
// Injection-proof by construction: a template emits alternating literal control ids and text runs; text (template words plus
// message bodies) is encoded with added-token matching off, one run between two control tokens, which keeps exact parity with
// Hugging Face on benign text. What the message bodies say never becomes a control id, and never decides which messages are
// tool results: a user message is a query even where its text wears the <tool_response> wrapper (the Jinja texts of Qwen3
// would take it for a tool's answer). Immutable; any thread may render.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/chat.hpp"
#include "base/chat_rendering.hpp"
#include "base/result.hpp"
#include "model/tokenizer.hpp"

namespace troupe {

enum class template_kind {
  qwen3,          // thinking can be switched (enable_thinking)
  chatml,         // no default system prompt, no tools
  qwen2_5,        // ChatML with Qwen2.5's default system prompt and tools
  llama3,         // Llama 3 (3.1 and later add date lines: not this)
  smollm2,        // ChatML with SmolLM2's default system prompt
  qwen2,          // ChatML with Qwen2's default system prompt
  qwen3_instruct, // Qwen3-2507 that never thinks
  qwen3_thinking, // Qwen3-2507 that always thinks
};
std::string_view name_of(template_kind kind) noexcept;
std::optional<template_kind> template_named(std::string_view name) noexcept;
std::string template_names(); // all of them, for messages

// errc::unsupported with a clear line when the text is none that we know.
result<template_kind> recognise_template(std::string_view jinja_text);

struct render_options {
  std::vector<std::string> tools; // JSON text each, as the client sent it
  bool add_generation_prompt = true;
  std::optional<bool> enable_thinking; // qwen3 only; others have nothing to switch and ignore it
};

// How an earlier rendering of the same beginning left off: the tokens of the messages up to `end`. Default: from the start.
struct render_start {
  message_end end;
  std::vector<token_id> tokens; // end.tokens of them
};

struct rendered_prompt {
  std::vector<token_id> tokens;  // of all, what an earlier rendering gave included
  std::string text;              // what this rendering wrote, for tests; not for tokenising
  bool thinking_open = false;    // the answer starts inside a think block
  std::vector<message_end> ends; // where this rendering can be taken up again, in order; not every message has such a place
};

class chat_template {
public:
  // errc::model_format when the tokenizer lacks a control token that the template needs.
  static result<chat_template> create(template_kind kind, std::shared_ptr<const tokenizer> tokens);
  // errc::invalid_argument: no message, an unknown role, or a tool that is no JSON object. errc::unsupported: tools or tool
  // calls for a template that has no form for them.
  //
  // `start`: from an earlier rendering by this template. Precondition: it had equal tools, and its messages before start.end,
  // their forms included, equal ours. The tokens are then those of a rendering from the start.
  result<rendered_prompt> render(const std::vector<chat_message>& messages, const render_options& options,
                                 render_start start = {}) const;

  // One form a message. How a message reads, and how all before it do, follows from these messages, their forms and the tools;
  // options other than tools change only what stands behind the last message. Takes any roles.
  std::vector<message_form> forms_of(const std::vector<chat_message>& messages) const;

  template_kind kind() const noexcept { return kind_; }
  bool thinks() const noexcept { return kind_ == template_kind::qwen3 || kind_ == template_kind::qwen3_thinking; }
  bool takes_tools() const noexcept;

private:
  chat_template(template_kind kind, std::shared_ptr<const tokenizer> tokens) : kind_(kind), tokens_(std::move(tokens)) {}

  template_kind kind_;
  std::shared_ptr<const tokenizer> tokens_;
};

} // namespace troupe
