#include "io/wire/chat_client.hpp"

#include <simdjson.h>

#include "config/limits.hpp"
#include "io/wire/json_writer.hpp"

namespace troupe {

std::string chat_request_body(const std::vector<chat_message>& messages, const chat_client_options& options) {
  std::string body;
  json_writer json(body);
  json.begin_object().string("model", options.model).key("messages").begin_array();
  for (const auto& message : messages)
    json.begin_object().string("role", message.role).string("content", message.content).end_object();
  json.end_array().key("stream").boolean(true);
  json.key("stream_options").begin_object().key("include_usage").boolean(true).end_object();
  if (options.max_tokens > 0)
    json.integer("max_tokens", options.max_tokens);
  if (options.temperature >= 0)
    json.number("temperature", options.temperature);
  if (options.seed >= 0)
    json.integer("seed", options.seed);
  if (options.ignore_eos)
    json.key("ignore_eos").boolean(true);
  if (options.thinking >= 0)
    json.key("enable_thinking").boolean(options.thinking == 1);
  json.end_object();
  return body;
}

namespace {

std::string text_at(const simdjson::dom::element& parent, const char* key) {
  std::string_view text;
  return parent[key].get(text) ? std::string() : std::string(text);
}

int number_at(const simdjson::dom::element& parent, const char* key) {
  std::int64_t value = -1;
  return parent[key].get(value) ? -1 : static_cast<int>(value);
}

} // namespace

result<chat_chunk> parse_chat_chunk(std::string_view data) {
  chat_chunk chunk;
  if (data == "[DONE]") {
    chunk.done = true;
    return chunk;
  }
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  if (parser.parse(simdjson::padded_string(data)).get(root))
    return fail(errc::invalid_argument, "the server sent an event that is not JSON: " + std::string(data.substr(0, 200)));
  simdjson::dom::element fault;
  if (!root["error"].get(fault) && fault.is_object()) {
    chunk.error = text_at(fault, "message");
    if (chunk.error.empty())
      chunk.error = "unnamed error";
    return chunk;
  }
  simdjson::dom::element choice;
  if (!root["choices"].at(0).get(choice)) {
    chunk.finish_reason = text_at(choice, "finish_reason");
    simdjson::dom::element delta;
    if (!choice["delta"].get(delta)) {
      chunk.content = text_at(delta, "content");
      chunk.reasoning = text_at(delta, "reasoning_content");
    }
  }
  simdjson::dom::element usage;
  if (!root["usage"].get(usage) && usage.is_object()) {
    chunk.prompt_tokens = number_at(usage, "prompt_tokens");
    chunk.completion_tokens = number_at(usage, "completion_tokens");
    simdjson::dom::element details;
    if (!usage["prompt_tokens_details"].get(details) && details.is_object())
      chunk.cached_tokens = number_at(details, "cached_tokens");
  }
  return chunk;
}

bool sse_reader::feed(std::string_view bytes, const std::function<void(std::string_view data)>& on_data) {
  held_.append(bytes);
  std::size_t begin = 0;
  for (std::size_t end; (end = held_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    std::string_view line(held_.data() + begin, end - begin);
    if (!line.empty() && line.back() == '\r')
      line.remove_suffix(1);
    if (line.substr(0, 5) != "data:")
      continue;
    line.remove_prefix(5);
    if (!line.empty() && line.front() == ' ')
      line.remove_prefix(1);
    on_data(line);
  }
  held_.erase(0, begin);
  return held_.size() <= limits::body_bytes_max;
}

} // namespace troupe
