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

void write_answer(prompt_writer& out, const chat_message& message, template_kind kind, bool after_query, bool last) {
  const auto parted = kind == template_kind::qwen3_instruct ? parted_answer{{}, message.content} : part(message);
  out.words("<|im_start|>assistant\n");
  if (kind != template_kind::qwen3_instruct && after_query && (last || !parted.reasoning.empty())) {
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

void write_system(prompt_writer& out, const conversation& chat) {
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

} // namespace

bool render_qwen3(prompt_writer& out, const conversation& chat, template_kind kind) {
  const auto& messages = chat.messages;
  write_system(out, chat);
  const std::size_t last_query = last_query_of(messages);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto& message = messages[i];
    if (message.role == "tool") {
      write_tool_result(out, messages, i);
    } else if (message.role == "assistant") {
      write_answer(out, message, kind, i > last_query, i + 1 == messages.size());
    } else if (message.role == "user" || i > 0) {
      out.words("<|im_start|>");
      out.words(message.role);
      out.words("\n");
      out.body(message.content);
      out.words("<|im_end|>\n");
    }
  }
  if (!chat.options.add_generation_prompt)
    return false;
  out.words("<|im_start|>assistant\n");
  if (kind == template_kind::qwen3_thinking)
    out.words("<think>\n");
  else if (kind == template_kind::qwen3 && !chat.options.enable_thinking.value_or(true))
    out.words("<think>\n\n</think>\n\n");
  return kind == template_kind::qwen3_thinking;
}

} // namespace troupe
