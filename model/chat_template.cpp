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

result<void> check_messages(const std::vector<chat_message>& messages, std::size_t first, template_kind kind,
                            bool takes_tools) {
  if (messages.empty())
    return fail(errc::invalid_argument, "messages: a conversation needs at least one message");
  for (std::size_t i = first; i < messages.size(); ++i) {
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

result<std::vector<std::string>> respace_tools(const std::vector<std::string>& tools) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < tools.size(); ++i) {
    auto tool = respace_json(tools[i]);
    if (!tool)
      return fail(errc::invalid_argument, "tools[" + std::to_string(i) + "]: " + tool.fault().message);
    if (tool->front() != '{')
      return fail(errc::invalid_argument, "tools[" + std::to_string(i) + "]: a JSON object is expected");
    out.push_back(std::move(tool).value());
  }
  return out;
}

const template_renderer& renderer_of(template_kind kind) {
  switch (kind) {
  case template_kind::chatml:
  case template_kind::smollm2:
  case template_kind::qwen2: return chatml_renderer;
  case template_kind::qwen2_5: return qwen2_5_renderer;
  case template_kind::llama3: return llama3_renderer;
  case template_kind::qwen3:
  case template_kind::qwen3_instruct:
  case template_kind::qwen3_thinking: break;
  }
  return qwen3_renderer;
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

std::vector<message_form> chat_template::forms_of(const std::vector<chat_message>& messages) const {
  std::vector<message_form> forms(messages.size(), message_form::plain);
  if (const auto mark_forms = renderer_of(kind_).mark_forms)
    mark_forms(kind_, messages, forms);
  return forms;
}

// What was rendered before was checked then.
result<rendered_prompt> chat_template::render(const std::vector<chat_message>& messages, const render_options& options,
                                              render_start start) const {
  const std::size_t known = start.end.messages;
  TROUPE_CHECK(known <= messages.size() && start.end.tokens == start.tokens.size());
  if (auto checked = check_messages(messages, known, kind_, takes_tools()); !checked)
    return checked.fault();
  if (!options.tools.empty() && !takes_tools())
    return fail(errc::unsupported, "tools: the chat template '" + std::string(name_of(kind_)) + "' has no form for tools");
  conversation chat{kind_, messages, forms_of(messages), {}, options.enable_thinking.value_or(true)};
  const auto& renderer = renderer_of(kind_);
  prompt_writer out(*tokens_, std::move(start));
  if (known == 0) {
    auto tools = respace_tools(options.tools);
    if (!tools)
      return tools.fault();
    chat.tools = std::move(tools).value();
    renderer.write_opening(out, chat);
  }
  for (std::size_t i = known; i < messages.size(); ++i) {
    renderer.write_message(out, chat, i);
    out.end_message(i + 1);
  }
  if (options.add_generation_prompt)
    renderer.write_answer_opening(out, chat);
  return std::move(out).finish(kind_ == template_kind::qwen3_thinking && options.add_generation_prompt);
}

} // namespace troupe
