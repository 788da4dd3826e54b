// Tells templates apart by what only they say. A text that has a feature we do not render is refused rather than guessed at.
#include <algorithm>
#include <initializer_list>

#include "model/chat_template.hpp"

namespace troupe {
namespace {

class template_text {
public:
  explicit template_text(std::string_view text) : text_(text) {}
  bool has(std::string_view part) const { return text_.find(part) != std::string_view::npos; }
  bool has_all(std::initializer_list<std::string_view> parts) const {
    return std::all_of(parts.begin(), parts.end(), [this](auto part) { return has(part); });
  }
  bool has_any(std::initializer_list<std::string_view> parts) const {
    return std::any_of(parts.begin(), parts.end(), [this](auto part) { return has(part); });
  }

  // Whether a system turn is written whose text is the template's own: a default system prompt.
  bool has_own_system_prompt() const {
    constexpr std::string_view opening = "<|im_start|>system\\n";
    for (auto at = text_.find(opening); at != std::string_view::npos; at = text_.find(opening, at + opening.size()))
      if (const auto next = text_.substr(at + opening.size(), 1); next != "'" && next != "\"")
        return true;
    return false;
  }

private:
  std::string_view text_;
};

std::optional<template_kind> recognise_llama3(const template_text& t) {
  const bool plain = t.has_all({"<|end_header_id|>", "<|eot_id|>", "trim"}) && !t.has_any({"tool", "raise_exception", "image"});
  return plain ? std::optional(template_kind::llama3) : std::nullopt;
}

// ChatML without tools and thoughts: they differ in the system prompt that they add.
std::optional<template_kind> recognise_chatml(const template_text& t) {
  if (t.has_any({"tool", "think", "bos_token", "raise_exception", "trim", "strip", "image", "reasoning"}) ||
      !t.has_any({"message['content']", "message.content", "message[\"content\"]"}))
    return std::nullopt;
  if (!t.has("You are"))
    return template_kind::chatml;
  if (t.has("You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>"))
    return template_kind::smollm2;
  if (t.has("You are a helpful assistant.<|im_end|>"))
    return template_kind::qwen2;
  return std::nullopt;
}

// The Qwen family's way to describe tools.
std::optional<template_kind> recognise_qwen(const template_text& t) {
  if (!t.has_all({"within <tools></tools> XML tags", "{\\\"name\\\": <function-name>, \\\"arguments\\\": <args-json-object>}",
                  "<tool_response>"}) ||
      t.has_any({"bos_token", "vision_start", "<function=", "raise_exception", "[gMASK]", "image_pad"}))
    return std::nullopt;
  if (t.has_all({"last_query_index", "<think>", "</think>", "reasoning_content"})) {
    if (t.has_all({"enable_thinking is defined and enable_thinking is false", "<think>\\n\\n</think>\\n\\n"}))
      return template_kind::qwen3;
    return t.has("<|im_start|>assistant\\n<think>\\n'") ? std::optional(template_kind::qwen3_thinking) : std::nullopt;
  }
  if (t.has_any({"<think>", "</think>", "enable_thinking"}))
    return std::nullopt;
  if (t.has("You are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>"))
    return template_kind::qwen2_5;
  return t.has_own_system_prompt() ? std::nullopt : std::optional(template_kind::qwen3_instruct);
}

} // namespace

result<template_kind> recognise_template(std::string_view jinja_text) {
  const template_text t(jinja_text);
  if (t.has("Cutting Knowledge Date"))
    return fail(errc::unsupported, "the model's chat template is Llama 3.1's or later, whose date lines are not rendered; "
                                   "--chat-template llama3 uses the plain form (known: " +
                                       template_names() + ")");
  std::optional<template_kind> kind;
  if (t.has("<|start_header_id|>"))
    kind = recognise_llama3(t);
  else if (t.has("<|im_start|>"))
    kind = t.has("<tools></tools>") ? recognise_qwen(t) : recognise_chatml(t);
  if (kind)
    return *kind;
  return fail(errc::unsupported,
              std::string(jinja_text.empty() ? "the model has no chat template" : "the model's chat template is unknown") +
                  "; name one with --chat-template (known: " + template_names() + ")");
}

} // namespace troupe
