// The templates themselves, one function a family. Preconditions: at least one message, every role is system, user, assistant
// or tool. Each returns whether the answer starts inside a think block.
#pragma once
#include <string>
#include <vector>

#include "base/chat.hpp"
#include "model/chat_template.hpp"
#include "model/chat_template_writer.hpp"

namespace troupe {

// `tools`: one JSON text each, spaced as `tojson` prints.
struct conversation {
  const std::vector<chat_message>& messages;
  std::vector<std::string> tools;
  const render_options& options;
};

bool render_chatml(prompt_writer& out, const conversation& chat, std::string_view default_system);
bool render_qwen2_5(prompt_writer& out, const conversation& chat);
bool render_qwen3(prompt_writer& out, const conversation& chat, template_kind kind);
bool render_llama3(prompt_writer& out, const conversation& chat);

// Shared by the Qwen templates.
void write_tool_list(prompt_writer& out, const std::vector<std::string>& tools);
void write_tool_result(prompt_writer& out, const std::vector<chat_message>& messages, std::size_t index);

} // namespace troupe
