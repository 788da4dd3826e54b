// Collects a prompt from template words, in which added tokens are matched, and bodies, in which none are. Text between two
// added tokens is encoded as one run, so that it merges as it would in the whole prompt.
#pragma once
#include <string>
#include <string_view>
#include <utility>

#include "model/chat_template.hpp"
#include "model/tokenizer.hpp"

namespace troupe {

class prompt_writer {
public:
  prompt_writer(const tokenizer& tokens, render_start start) : tokens_(tokens), run_(std::move(start.end.open_text)) {
    prompt_.tokens = std::move(start.tokens);
  }

  // The template's own text. Never pass anything that a client sent.
  void words(std::string_view text) {
    prompt_.text += text;
    for (std::size_t from = 0;;) {
      const auto match = tokens_.find_added(text, from);
      run_ += text.substr(from, match.begin - from);
      if (match.length == 0)
        return;
      end_run();
      prompt_.tokens.push_back(match.id);
      from = match.begin + match.length;
    }
  }

  // Text from outside: message bodies, tool descriptions, names.
  void body(std::string_view text) {
    prompt_.text += text;
    run_ += text;
    run_has_body_ = true;
  }

  // So many messages are written. Where a body is still in the run, this is no place to take up again: text that may be long
  // would be kept twice.
  void end_message(std::size_t messages) {
    if (!run_has_body_)
      prompt_.ends.push_back({messages, prompt_.tokens.size(), run_});
  }

  rendered_prompt finish(bool thinking_open) && {
    end_run();
    prompt_.thinking_open = thinking_open;
    return std::move(prompt_);
  }

private:
  void end_run() {
    tokens_.encode(run_, prompt_.tokens);
    run_.clear();
    run_has_body_ = false;
  }

  const tokenizer& tokens_;
  rendered_prompt prompt_;
  std::string run_; // since the last added token
  bool run_has_body_ = false;
};

} // namespace troupe
