#include "model/chat_template.hpp"

#include <algorithm>
#include <array>

#include "base/check.hpp"
#include "model/chat_template_json.hpp"
#include "model/chat_template_renderers.hpp"

namespace troupe {
namespace {

struct named_kind {
  template_kind kind;
  std::string_view name;
};

constexpr std::array names{
    named_kind{template_kind::qwen3, "qwen3"},
    named_kind{template_kind::qwen3_instruct, "qwen3-instruct"},
    named_kind{template_kind::qwen3_thinking, "qwen3-thinking"},
    named_kind{template_kind::qwen2_5, "qwen2.5"},
    named_kind{template_kind::qwen2, "qwen2"},
    named_kind{template_kind::chatml, "chatml"},
    named_kind{template_kind::smollm2, "smollm2"},
    named_kind{template_kind::llama3, "llama3"},
};

constexpr std::string_view smollm2_system = "You are a helpful AI assistant named SmolLM, trained by Hugging Face";
constexpr std::string_view qwen2_system = "You are a helpful assistant.";

result<void> check_messages(const std::vector<chat_message>& messages, template_kind kind, bool takes_tools) {
  if (messages.empty())
    return fail(errc::invalid_argument, "messages: a conversation needs at least one message");
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto& role = messages[i].role;
    if (role != "system" && role != "user" && role != "assistant" && role != "tool")
      return fail(errc::invalid_argument,
                  "messages[" + std::to_string(i) + "].role: '" + role + "' is none of system, user, assistant, tool");
    if (!messages[i].tool_calls.empty() && !takes_tools)
      return fail(errc::unsupported, "messages[" + std::to_string(i) + "].tool_calls: the chat template '" +
                                         std::string(name_of(kind)) + "' has no form for tool calls");
  }
  return {};
}

} // namespace

std::string_view name_of(template_kind kind) noexcept {
  for (const auto& n : names)
    if (n.kind == kind)
      return n.name;
  return "unknown";
}

// '.', '-' and '_' are one, so that "qwen2.5", "qwen2-5" and "qwen2_5" name the same.
std::optional<template_kind> template_named(std::string_view name) noexcept {
  const auto same = [](char a, char b) {
    const auto folded = [](char c) { return c == '.' || c == '-' ? '_' : c; };
    return folded(a) == folded(b);
  };
  for (const auto& n : names)
    if (std::equal(n.name.begin(), n.name.end(), name.begin(), name.end(), same))
      return n.kind;
  return std::nullopt;
}

std::string template_names() {
  std::string list;
  for (const auto& n : names)
    list += (list.empty() ? "" : ", ") + std::string(n.name);
  return list;
}

bool chat_template::takes_tools() const noexcept {
  return kind_ == template_kind::qwen3 || kind_ == template_kind::qwen3_instruct || kind_ == template_kind::qwen3_thinking ||
         kind_ == template_kind::qwen2_5;
}

result<chat_template> chat_template::create(template_kind kind, std::shared_ptr<const tokenizer> tokens) {
  TROUPE_CHECK(tokens != nullptr);
  using needed_tokens = std::vector<std::string_view>;
  const auto needed = kind == template_kind::llama3
                          ? needed_tokens{"<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}
                          : needed_tokens{"<|im_start|>", "<|im_end|>"};
  for (const auto token : needed)
    if (tokens->added_token(token) < 0)
      return fail(errc::model_format, "chat template '" + std::string(name_of(kind)) +
                                          "': the tokenizer has no control token " + std::string(token));
  return chat_template(kind, std::move(tokens));
}

result<rendered_prompt> chat_template::render(const std::vector<chat_message>& messages, const render_options& options) const {
  if (auto checked = check_messages(messages, kind_, takes_tools()); !checked)
    return checked.fault();
  if (!options.tools.empty() && !takes_tools())
    return fail(errc::unsupported, "tools: the chat template '" + std::string(name_of(kind_)) + "' has no form for tools");
  conversation chat{messages, {}, options};
  for (std::size_t i = 0; i < options.tools.size(); ++i) {
    auto tool = respace_json(options.tools[i]);
    if (!tool)
      return fail(errc::invalid_argument, "tools[" + std::to_string(i) + "]: " + tool.fault().message);
    if (tool->front() != '{')
      return fail(errc::invalid_argument, "tools[" + std::to_string(i) + "]: a JSON object is expected");
    chat.tools.push_back(std::move(tool).value());
  }
  prompt_writer out(*tokens_);
  bool thinking_open = false;
  switch (kind_) {
  case template_kind::chatml: thinking_open = render_chatml(out, chat, {}); break;
  case template_kind::smollm2: thinking_open = render_chatml(out, chat, smollm2_system); break;
  case template_kind::qwen2: thinking_open = render_chatml(out, chat, qwen2_system); break;
  case template_kind::qwen2_5: thinking_open = render_qwen2_5(out, chat); break;
  case template_kind::llama3: thinking_open = render_llama3(out, chat); break;
  case template_kind::qwen3:
  case template_kind::qwen3_instruct:
  case template_kind::qwen3_thinking: thinking_open = render_qwen3(out, chat, kind_); break;
  }
  return std::move(out).finish(thinking_open);
}

} // namespace troupe
