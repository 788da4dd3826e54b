// The client's side of /v1/chat/completions: builds a request body and reads the stream that answers it. Knows
// no sockets.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/chat.hpp"
#include "base/result.hpp"

namespace troupe {

struct chat_client_options {
  std::string model;
  int max_tokens = 0;      // 0: not sent
  double temperature = -1; // negative: not sent
  long long seed = -1;     // negative: not sent
  bool ignore_eos = false;
  int thinking = -1; // 0 off, 1 on, negative: not sent
};

// The JSON body of a streamed request with a usage chunk at its end.
std::string chat_request_body(const std::vector<chat_message>& messages, const chat_client_options& options);

struct chat_chunk {
  std::string content;
  std::string reasoning;
  std::string finish_reason;
  std::string error;      // the server's message where it sent an error object
  bool done = false;      // [DONE]
  int prompt_tokens = -1; // of the usage chunk; -1 elsewhere
  int cached_tokens = -1;
  int completion_tokens = -1;
};

// One event's data, without "data: ".
result<chat_chunk> parse_chat_chunk(std::string_view data);

// Cuts a byte stream into the data of its server-sent events. Holds at most limits::body_bytes_max.
class sse_reader {
public:
  // False when an event exceeds the limit.
  bool feed(std::string_view bytes, const std::function<void(std::string_view data)>& on_data);

private:
  std::string held_;
};

} // namespace troupe
