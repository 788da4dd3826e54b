// Llama 3. Bodies are stripped of white space at both ends, as the template's `trim` does.
#include "model/chat_template_renderers.hpp"
#include "model/unicode.hpp"

namespace troupe {
namespace {

void write_opening(prompt_writer& out, const conversation&) {
  out.words("<|begin_of_text|>");
}

void write_message(prompt_writer& out, const conversation& chat, std::size_t index) {
  const auto& message = chat.messages[index];
  out.words("<|start_header_id|>");
  out.words(message.role);
  out.words("<|end_header_id|>\n\n");
  out.body(unicode::strip(message.content));
  out.words("<|eot_id|>");
}

void write_answer_opening(prompt_writer& out, const conversation&) {
  out.words("<|start_header_id|>assistant<|end_header_id|>\n\n");
}

} // namespace

constexpr template_renderer llama3_renderer{nullptr, write_opening, write_message, write_answer_opening};

} // namespace troupe
