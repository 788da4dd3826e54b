// The templates themselves, one renderer a family. Preconditions: at least one message, every role is system, user, assistant
// or tool.
//
// Always true: write_message(i) reads messages 0 to i and their forms, nothing of later messages and none of the options, so
// that what it wrote holds for every conversation that begins with the same messages and forms.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "base/chat.hpp"
#include "model/chat_template.hpp"
#include "model/chat_template_writer.hpp"

namespace troupe {

struct conversation {
  template_kind kind;
  const std::vector<chat_message>& messages;
  std::vector<message_form> forms; // one a message
  std::vector<std::string> tools;  // one JSON text each, spaced as `tojson` prints; for the opening alone
  bool enable_thinking = true;     // for the answer's opening alone
};

struct template_renderer {
  // Sets the forms that are not plain. Null: every message is.
  void (*mark_forms)(template_kind kind, const std::vector<chat_message>& messages, std::vector<message_form>& forms);
  void (*write_opening)(prompt_writer& out, const conversation& chat); // may write message 0
  void (*write_message)(prompt_writer& out, const conversation& chat, std::size_t index);
  void (*write_answer_opening)(prompt_writer& out, const conversation& chat); // the generation prompt
};

extern const template_renderer chatml_renderer;
extern const template_renderer qwen2_5_renderer;
extern const template_renderer qwen3_renderer;
extern const template_renderer llama3_renderer;

// Shared by the Qwen templates.
void write_tool_list(prompt_writer& out, const std::vector<std::string>& tools);
void mark_joined_results(const std::vector<chat_message>& messages, std::vector<message_form>& forms);
void write_tool_result(prompt_writer& out, const conversation& chat, std::size_t index);

} // namespace troupe
