// Qwen3: think blocks of earlier turns are dropped, those since the last query are kept.
#include <optional>

#include "model/chat_template_renderers.hpp"

namespace troupe {
namespace {

std::string_view without_leading_newlines(std::string_view text) {
  const auto begin = text.find_first_not_of('\n');
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin);
}

std::string_view without_trailing_newlines(std::string_view text) {
  return text.substr(0, text.find_last_not_of('\n') + 1);
}

struct parted_answer {
  std::string_view reasoning;
  std::string_view content;
};

// An answer's own think block, where the client sent it inside of the text: reasoning is what stands between the last <think>
// before the first </think> and that; content is what follows the last </think>.
parted_answer part(const chat_message& message) {
  constexpr std::string_view open = "<think>", close = "</think>";
  const std::string_view text = message.content;
  if (!message.reasoning.empty())
    return {message.reasoning, text};
  const auto first_close = text.find(close);
  if (first_close == std::string_view::npos)
    return {{}, text};
  auto reasoning = without_trailing_newlines(text.substr(0, first_close));
  if (const auto last_open = reasoning.rfind(open); last_open != std::string_view::npos)
    reasoning.remove_prefix(last_open + open.size());
  return {without_leading_newlines(reasoning), without_leading_newlines(text.substr(text.rfind(close) + close.size()))};
}

// The last user message. The role alone decides: text that looks like a tool's answer does not make it one.
std::size_t last_query_of(const std::vector<chat_message>& messages) {
  for (std::size_t i = messages.size(); i-- > 0;)
    if (messages[i].role == "user")
      return i;
  return messages.size() - 1;
}

void write_calls(prompt_writer& out, const chat_message& message, bool after_content) {
  for (const auto& call : message.tool_calls) {
    if (after_content)
      out.words("\n");
    after_content = true;
    out.words("<tool_call>\n{\"name\": \"");
    out.body(call.name);
    out.words("\", \"arguments\": ");
    out.body(call.arguments);
    out.words("}\n</tool_call>");
  }
}

parted_answer part(const chat_message& message, template_kind kind) {
  return kind == template_kind::qwen3_instruct ? parted_answer{{}, message.content} : part(message);
}

// An answer that follows the last query keeps its thoughts, and the last one has a think block even without any.
void mark_forms(template_kind kind, const std::vector<chat_message>& messages, std::vector<message_form>& forms) {
  mark_joined_results(messages, forms);
  if (kind == template_kind::qwen3_instruct || messages.empty())
    return;
  for (std::size_t i = last_query_of(messages) + 1; i < messages.size(); ++i)
    if (messages[i].role == "assistant" && (i + 1 == messages.size() || !part(messages[i]).reasoning.empty()))
      forms[i] = message_form::thinking;
}

void write_answer(prompt_writer& out, const chat_message& message, template_kind kind, message_form form) {
  const auto parted = part(message, kind);
  out.words("<|im_start|>assistant\n");
  if (form == message_form::thinking) {
    out.words("<think>\n");
    out.body(without_trailing_newlines(without_leading_newlines(parted.reasoning)));
    out.words("\n</think>\n\n");
    out.body(without_leading_newlines(parted.content));
  } else {
    out.body(parted.content);
  }
  write_calls(out, message, !parted.content.empty());
  out.words("<|im_end|>\n");
}

void write_opening(prompt_writer& out, const conversation& chat) {
  const auto& first = chat.messages.front();
  const bool has_system = first.role == "system";
  if (!has_system && chat.tools.empty())
    return;
  out.words("<|im_start|>system\n");
  if (has_system)
    out.body(first.content);
  if (chat.tools.empty()) {
    out.words("<|im_end|>\n");
    return;
  }
  if (has_system)
    out.words("\n\n");
  write_tool_list(out, chat.tools);
}

void write_message(prompt_writer& out, const conversation& chat, std::size_t index) {
  const auto& message = chat.messages[index];
  if (message.role == "tool") {
    write_tool_result(out, chat, index);
  } else if (message.role == "assistant") {
    write_answer(out, message, chat.kind, chat.forms[index]);
  } else if (message.role == "user" || index > 0) {
    out.words("<|im_start|>");
    out.words(message.role);
    out.words("\n");
    out.body(message.content);
    out.words("<|im_end|>\n");
  }
}

void write_answer_opening(prompt_writer& out, const conversation& chat) {
  out.words("<|im_start|>assistant\n");
  if (chat.kind == template_kind::qwen3_thinking)
    out.words("<think>\n");
  else if (chat.kind == template_kind::qwen3 && !chat.enable_thinking)
    out.words("<think>\n\n</think>\n\n");
}

} // namespace

constexpr template_renderer qwen3_renderer{mark_forms, write_opening, write_message, write_answer_opening};

} // namespace troupe
