// ChatML and its Qwen2.5 form.
#include "model/chat_template_json.hpp"
#include "model/chat_template_renderers.hpp"

namespace troupe {
namespace {

void write_turn(prompt_writer& out, const chat_message& message) {
  out.words("<|im_start|>");
  out.words(message.role);
  out.words("\n");
  out.body(message.content);
  out.words("<|im_end|>\n");
}

constexpr std::string_view smollm2_system = "You are a helpful AI assistant named SmolLM, trained by Hugging Face";
constexpr std::string_view qwen2_system = "You are a helpful assistant.";
constexpr std::string_view qwen2_5_system = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.";

std::string_view default_system(template_kind kind) {
  return kind == template_kind::smollm2 ? smollm2_system : kind == template_kind::qwen2 ? qwen2_system : std::string_view();
}

void write_default_system(prompt_writer& out, const conversation& chat) {
  const auto system = default_system(chat.kind);
  if (system.empty() || chat.messages.front().role == "system")
    return;
  out.words("<|im_start|>system\n");
  out.words(system);
  out.words("<|im_end|>\n");
}

void write_plain_message(prompt_writer& out, const conversation& chat, std::size_t index) {
  write_turn(out, chat.messages[index]);
}

void write_answer_opening(prompt_writer& out, const conversation&) {
  out.words("<|im_start|>assistant\n");
}

// Arguments are an object in the template's eyes. What is no JSON can only be a string to it.
std::string arguments_as_json(const std::string& arguments) {
  auto json = respace_json(arguments);
  return json ? std::move(json).value() : json_string(arguments);
}

void write_call_turn(prompt_writer& out, const chat_message& message) {
  out.words("<|im_start|>assistant");
  if (!message.content.empty()) {
    out.words("\n");
    out.body(message.content);
  }
  for (const auto& call : message.tool_calls) {
    out.words("\n<tool_call>\n{\"name\": \"");
    out.body(call.name);
    out.words("\", \"arguments\": ");
    out.body(arguments_as_json(call.arguments));
    out.words("}\n</tool_call>");
  }
  out.words("<|im_end|>\n");
}

void write_qwen2_5_opening(prompt_writer& out, const conversation& chat) {
  const auto& first = chat.messages.front();
  out.words("<|im_start|>system\n");
  if (first.role == "system")
    out.body(first.content);
  else
    out.words(qwen2_5_system);
  if (chat.tools.empty()) {
    out.words("<|im_end|>\n");
  } else {
    out.words("\n\n");
    write_tool_list(out, chat.tools);
  }
}

void write_qwen2_5_message(prompt_writer& out, const conversation& chat, std::size_t index) {
  const auto& message = chat.messages[index];
  if (message.role == "tool")
    write_tool_result(out, chat, index);
  else if (message.role == "assistant" && !message.tool_calls.empty())
    write_call_turn(out, message);
  else if (message.role != "system" || index > 0)
    write_turn(out, message);
}

void mark_qwen2_5_forms(template_kind, const std::vector<chat_message>& messages, std::vector<message_form>& forms) {
  mark_joined_results(messages, forms);
}

} // namespace

void write_tool_list(prompt_writer& out, const std::vector<std::string>& tools) {
  out.words("# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
            "You are provided with function signatures within <tools></tools> XML tags:\n<tools>");
  for (const auto& tool : tools) {
    out.words("\n");
    out.body(tool);
  }
  out.words("\n</tools>\n\nFor each function call, return a json object with function name and arguments within "
            "<tool_call></tool_call> XML tags:\n<tool_call>\n"
            "{\"name\": <function-name>, \"arguments\": <args-json-object>}\n</tool_call><|im_end|>\n");
}

// Neighbouring results share one user turn.
void mark_joined_results(const std::vector<chat_message>& messages, std::vector<message_form>& forms) {
  for (std::size_t i = 0; i + 1 < messages.size(); ++i)
    if (messages[i].role == "tool" && messages[i + 1].role == "tool")
      forms[i] = message_form::joined;
}

void write_tool_result(prompt_writer& out, const conversation& chat, std::size_t index) {
  if (index == 0 || chat.messages[index - 1].role != "tool")
    out.words("<|im_start|>user");
  out.words("\n<tool_response>\n");
  out.body(chat.messages[index].content);
  out.words("\n</tool_response>");
  if (chat.forms[index] != message_form::joined)
    out.words("<|im_end|>\n");
}

constexpr template_renderer chatml_renderer{nullptr, write_default_system, write_plain_message, write_answer_opening};
constexpr template_renderer qwen2_5_renderer{mark_qwen2_5_forms, write_qwen2_5_opening, write_qwen2_5_message,
                                             write_answer_opening};

} // namespace troupe
