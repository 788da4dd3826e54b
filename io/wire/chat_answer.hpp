// chat.completion and chat.completion.chunk, field for field as the official clients read them. Each encoder belongs to
// one answer and one thread.
#pragma once
#include <memory>

#include "io/http/answer.hpp"
#include "io/wire/answer_identity.hpp"

namespace troupe {

struct chat_answer_options {
  bool stream = false;
  bool include_usage = false; // a last chunk with the usage; the others say usage:null
  bool logprobs = false;      // were asked for: a list, though it may be empty
  int choices = 1;            // the usage counts the prompt once and what all of them wrote
};

std::unique_ptr<body_encoder> make_chat_encoder(answer_identity identity, chat_answer_options options);

} // namespace troupe
