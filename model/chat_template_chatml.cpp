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

constexpr std::string_view qwen2_5_system = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.";

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

} // namespace

bool render_chatml(prompt_writer& out, const conversation& chat, std::string_view default_system) {
  if (!default_system.empty() && chat.messages.front().role != "system") {
    out.words("<|im_start|>system\n");
    out.words(default_system);
    out.words("<|im_end|>\n");
  }
  for (const auto& message : chat.messages)
    write_turn(out, message);
  if (chat.options.add_generation_prompt)
    out.words("<|im_start|>assistant\n");
  return false;
}

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
void write_tool_result(prompt_writer& out, const std::vector<chat_message>& messages, std::size_t index) {
  if (index == 0 || messages[index - 1].role != "tool")
    out.words("<|im_start|>user");
  out.words("\n<tool_response>\n");
  out.body(messages[index].content);
  out.words("\n</tool_response>");
  if (index + 1 == messages.size() || messages[index + 1].role != "tool")
    out.words("<|im_end|>\n");
}

bool render_qwen2_5(prompt_writer& out, const conversation& chat) {
  const auto& messages = chat.messages;
  const bool has_system = messages.front().role == "system";
  out.words("<|im_start|>system\n");
  if (has_system)
    out.body(messages.front().content);
  else
    out.words(qwen2_5_system);
  if (chat.tools.empty()) {
    out.words("<|im_end|>\n");
  } else {
    out.words("\n\n");
    write_tool_list(out, chat.tools);
  }
  for (std::size_t i = has_system ? 1 : 0; i < messages.size(); ++i) {
    if (messages[i].role == "tool")
      write_tool_result(out, messages, i);
    else if (messages[i].role == "assistant" && !messages[i].tool_calls.empty())
      write_call_turn(out, messages[i]);
    else
      write_turn(out, messages[i]);
  }
  if (chat.options.add_generation_prompt)
    out.words("<|im_start|>assistant\n");
  return false;
}

} // namespace troupe
