// `troupe chat`: a conversation in the terminal, with a server or with a model in this process.
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <deque>
#include <functional>
#include <iostream>
#include <mutex>

#include "app/commands.hpp"
#include "app/engine.hpp"
#include "app/http.hpp"
#include "io/wire/chat_client.hpp"

namespace troupe {
namespace {

// Takes a conversation, shows the answer as it comes, returns it.
using answer_fn = std::function<result<chat_message>(const std::vector<chat_message>&)>;

// Prints text at once; think blocks are dimmed where the output is a terminal.
class answer_view {
public:
  void reasoning(const std::string& text) { show(text, true); }
  void content(const std::string& text) { show(text, false); }
  void end() {
    if (dim_)
      std::fputs("\033[0m", stdout);
    dim_ = false;
    std::fputs("\n", stdout);
    std::fflush(stdout);
  }

private:
  void show(const std::string& text, bool dim) {
    if (text.empty())
      return;
    if (dim != dim_ && isatty(1))
      std::fputs(dim ? "\033[2m" : "\033[0m\n", stdout);
    dim_ = dim;
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  }
  bool dim_ = false;
};

// Events of one request, handed from the runtime's threads to the terminal's. Bounded by the request's max_tokens.
class waiting_sink final : public event_sink {
public:
  void push(generation_event event) noexcept override {
    {
      const std::lock_guard lock(mutex_);
      events_.push_back(std::move(event));
    }
    ready_.notify_one();
  }
  generation_event next() {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [&] { return !events_.empty(); });
    auto event = std::move(events_.front());
    events_.pop_front();
    return event;
  }

private:
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<generation_event> events_;
};

result<chat_message> ask_engine(edge_port& port, const chat_options& options, const std::vector<chat_message>& messages) {
  generation_request request;
  request.messages = messages;
  request.max_tokens = options.max_tokens;
  if (options.temperature >= 0)
    request.sampling.temperature = static_cast<float>(options.temperature);
  if (options.thinking >= 0)
    request.enable_thinking = options.thinking == 1;
  auto sink = std::make_shared<waiting_sink>();
  if (auto sent = port.submit(std::move(request), sink); !sent)
    return sent.fault();
  chat_message answer{"assistant", {}, {}, {}, {}};
  answer_view view;
  for (;;) {
    const auto event = sink->next();
    if (const auto* text = std::get_if<text_delta>(&event)) {
      view.content(text->text);
      answer.content += text->text;
    } else if (const auto* thought = std::get_if<reasoning_delta>(&event)) {
      view.reasoning(thought->text);
    } else if (const auto* failed = std::get_if<generation_failed>(&event)) {
      view.end();
      return failed->fault;
    } else if (std::get_if<generation_finished>(&event)) {
      view.end();
      return answer;
    }
  }
}

result<chat_message> ask_server(const chat_options& options, const std::vector<chat_message>& messages) {
  chat_client_options body;
  body.max_tokens = options.max_tokens;
  body.temperature = options.temperature;
  body.thinking = options.thinking;
  chat_message answer{"assistant", {}, {}, {}, {}};
  answer_view view;
  sse_reader reader;
  std::string fault;
  const auto called = http_call(options.url + "/v1/chat/completions", chat_request_body(messages, body), options.key,
                                [&](std::string_view bytes) {
                                  return reader.feed(bytes, [&](std::string_view data) {
                                    const auto chunk = parse_chat_chunk(data);
                                    if (!chunk || !chunk->error.empty()) {
                                      fault = chunk ? chunk->error : chunk.fault().message;
                                      return;
                                    }
                                    view.reasoning(chunk->reasoning);
                                    view.content(chunk->content);
                                    answer.content += chunk->content;
                                  });
                                });
  view.end();
  if (!called)
    return called.fault();
  if (called->status != 200)
    return fail(errc::unavailable, "HTTP " + std::to_string(called->status) + ": " + called->body);
  if (!fault.empty())
    return fail(errc::unavailable, fault);
  return answer;
}

int converse(const chat_options& options, const answer_fn& ask) {
  std::vector<chat_message> messages;
  if (!options.system.empty())
    messages.push_back({"system", options.system, {}, {}, {}});
  const bool terminal = isatty(0) != 0;
  if (terminal)
    std::fputs("Type a message; an empty line or Ctrl-D ends.\n", stdout);
  for (;;) {
    if (terminal)
      std::fputs("> ", stdout);
    std::fflush(stdout);
    std::string line;
    if (!std::getline(std::cin, line) || line.empty())
      return 0;
    messages.push_back({"user", line, {}, {}, {}});
    const auto answer = ask(messages);
    if (!answer) {
      std::fprintf(stderr, "troupe chat: %s\n", answer.fault().message.c_str());
      messages.pop_back();
      if (!terminal)
        return 1;
      continue;
    }
    messages.push_back(*answer);
  }
}

} // namespace

int chat_command(const settings& s, const chat_options& options) {
  if (!options.url.empty()) {
    chat_options at = options;
    at.url = base_url(options.url);
    return converse(at, [&](const auto& messages) { return ask_server(at, messages); });
  }
  const auto engine = start_engine(s, nullptr, stderr_log(log_level::warning));
  if (!engine) {
    std::fprintf(stderr, "troupe chat: %s\n", engine.fault().message.c_str());
    return 1;
  }
  return converse(options, [&](const auto& messages) { return ask_engine((*engine)->port(), options, messages); });
}

} // namespace troupe
