// Llama 3. Bodies are stripped of white space at both ends, as the template's `trim` does.
#include "model/chat_template_renderers.hpp"
#include "model/unicode.hpp"

namespace troupe {

bool render_llama3(prompt_writer& out, const conversation& chat) {
  out.words("<|begin_of_text|>");
  for (const auto& message : chat.messages) {
    out.words("<|start_header_id|>");
    out.words(message.role);
    out.words("<|end_header_id|>\n\n");
    out.body(unicode::strip(message.content));
    out.words("<|eot_id|>");
  }
  if (chat.options.add_generation_prompt)
    out.words("<|start_header_id|>assistant<|end_header_id|>\n\n");
  return false;
}

} // namespace troupe
