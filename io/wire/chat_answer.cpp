#include "io/wire/chat_answer.hpp"

#include <algorithm>
#include <functional>

#include "io/wire/http_status.hpp"

namespace troupe {
namespace {

void write_identity(json_writer& w, const answer_identity& identity, std::string_view object) {
  w.string("id", identity.id).string("object", object).integer("created", identity.created).string("model", identity.model);
}

void write_logprobs(json_writer& w, const std::vector<text_logprob>& values, bool even_empty = false) {
  if (values.empty() && !even_empty) {
    w.null("logprobs");
    return;
  }
  w.key("logprobs").begin_object().key("content").begin_array();
  for (const text_logprob& value : values)
    write_logprob(w, value);
  w.end_array().null("refusal").end_object();
}

void write_tool_call(json_writer& w, const tool_call& call) {
  w.string("id", call.id).string("type", "function").key("function").begin_object();
  w.string("name", call.name).string("arguments", call.arguments).end_object();
}

// Adds a further choice's: the prompt is the same, and what was dropped of it; so the choice that dropped most tells that.
void add_usage(token_usage& sum, const token_usage& choice, int number) {
  if (number == 0) {
    sum.prompt_tokens = choice.prompt_tokens;
    sum.cached_tokens = choice.cached_tokens;
  }
  sum.completion_tokens += choice.completion_tokens;
  sum.reasoning_tokens += choice.reasoning_tokens;
  sum.dropped_tokens = std::max(sum.dropped_tokens, choice.dropped_tokens);
}

class chat_stream_encoder final : public body_encoder {
public:
  chat_stream_encoder(answer_identity identity, chat_answer_options options)
      : identity_(std::move(identity)), options_(options), open_(options.choices),
        tool_calls_(static_cast<std::size_t>(options.choices)) {}

  bool streams() const noexcept override { return true; }

  void encode(const generation_event& event, std::string& body, int choice) override {
    choice_ = choice;
    std::visit([&](const auto& e) { on(e, body); }, event);
  }

private:
  using write_delta = std::function<void(json_writer&)>;

  void chunk(std::string& body, const write_delta& delta, const std::vector<text_logprob>& logprobs, std::string_view finish) {
    json_.clear();
    json_writer w(json_);
    w.begin_object();
    write_identity(w, identity_, "chat.completion.chunk");
    w.key("choices").begin_array().begin_object().integer("index", choice_).key("delta").begin_object();
    delta(w);
    w.end_object();
    write_logprobs(w, logprobs);
    if (finish.empty())
      w.null("finish_reason");
    else
      w.string("finish_reason", finish);
    w.end_object().end_array();
    if (options_.include_usage)
      w.null("usage");
    w.end_object();
    append_sse(body, json_);
  }

  void on(const generation_started&, std::string& body) {
    chunk(
        body, [](json_writer& w) { w.string("role", "assistant").string("content", ""); }, {}, "");
  }
  void on(const text_delta& e, std::string& body) {
    chunk(
        body, [&](json_writer& w) { w.string("content", e.text); }, e.logprobs, "");
  }
  void on(const reasoning_delta& e, std::string& body) {
    chunk(
        body, [&](json_writer& w) { w.string("reasoning_content", e.text); }, {}, "");
  }
  // The call comes complete: its first delta names it, the second carries the arguments.
  void on(const tool_call_made& e, std::string& body) {
    const int index = tool_calls_[static_cast<std::size_t>(choice_)]++;
    chunk(
        body,
        [&](json_writer& w) {
          w.key("tool_calls").begin_array().begin_object().integer("index", index);
          write_tool_call(w, {e.call.id, e.call.name, ""});
          w.end_object().end_array();
        },
        {}, "");
    chunk(
        body,
        [&](json_writer& w) {
          w.key("tool_calls").begin_array().begin_object().integer("index", index).key("function").begin_object();
          w.string("arguments", e.call.arguments).end_object().end_object().end_array();
        },
        {}, "");
  }
  void on(const generation_finished& e, std::string& body) {
    if (e.reason == finish_reason::cancelled)
      return append_sse(body, error_body({errc::cancelled, "The request was cancelled.", {}, {}}));
    chunk(
        body, [](json_writer&) {}, {}, finish_reason_name(e.reason));
    add_usage(usage_, e.usage, choice_);
    if (--open_ > 0)
      return;
    if (options_.include_usage) {
      json_.clear();
      json_writer w(json_);
      w.begin_object();
      write_identity(w, identity_, "chat.completion.chunk");
      w.key("choices").begin_array().end_array().key("usage");
      write_usage(w, usage_);
      w.end_object();
      append_sse(body, json_);
    }
    append_sse(body, "[DONE]");
  }
  void on(const generation_failed& e, std::string& body) { append_sse(body, error_body(to_wire(e.fault))); }

  answer_identity identity_;
  chat_answer_options options_;
  int choice_ = 0;              // of the event that is written
  int open_;                    // choices that have not ended
  std::vector<int> tool_calls_; // by choice
  token_usage usage_;
  std::string json_;
};

class chat_plain_encoder final : public body_encoder {
public:
  chat_plain_encoder(answer_identity identity, chat_answer_options options)
      : identity_(std::move(identity)), options_(options), open_(options.choices),
        choices_(static_cast<std::size_t>(options.choices)) {}

  bool streams() const noexcept override { return false; }

  void encode(const generation_event& event, std::string& body, int number) override {
    choice& at = choices_[static_cast<std::size_t>(number)];
    if (const auto* text = std::get_if<text_delta>(&event)) {
      at.message.content += text->text;
      at.logprobs.insert(at.logprobs.end(), text->logprobs.begin(), text->logprobs.end());
    } else if (const auto* reasoning = std::get_if<reasoning_delta>(&event)) {
      at.message.reasoning += reasoning->text;
    } else if (const auto* made = std::get_if<tool_call_made>(&event)) {
      at.message.tool_calls.push_back(made->call);
    } else if (const auto* finished = std::get_if<generation_finished>(&event)) {
      at.reason = finished->reason;
      add_usage(usage_, finished->usage, number);
      if (--open_ == 0)
        write(body);
    }
  }

private:
  struct choice {
    chat_message message;
    std::vector<text_logprob> logprobs;
    finish_reason reason = finish_reason::stop;
  };

  void write(std::string& body) const {
    json_writer w(body);
    w.begin_object();
    write_identity(w, identity_, "chat.completion");
    w.key("choices").begin_array();
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      w.begin_object().integer("index", static_cast<std::int64_t>(i));
      write_message(w, choices_[i].message);
      write_logprobs(w, choices_[i].logprobs, options_.logprobs);
      w.string("finish_reason", finish_reason_name(choices_[i].reason)).end_object();
    }
    w.end_array().key("usage");
    write_usage(w, usage_);
    w.end_object();
  }

  static void write_message(json_writer& w, const chat_message& message) {
    w.key("message").begin_object().string("role", "assistant");
    if (message.content.empty() && !message.tool_calls.empty())
      w.null("content");
    else
      w.string("content", message.content);
    w.null("refusal");
    if (!message.reasoning.empty())
      w.string("reasoning_content", message.reasoning);
    if (!message.tool_calls.empty()) {
      w.key("tool_calls").begin_array();
      for (const tool_call& call : message.tool_calls) {
        w.begin_object();
        write_tool_call(w, call);
        w.end_object();
      }
      w.end_array();
    }
    w.end_object();
  }

  answer_identity identity_;
  chat_answer_options options_;
  int open_; // choices that have not ended
  std::vector<choice> choices_;
  token_usage usage_;
};

} // namespace

std::unique_ptr<body_encoder> make_chat_encoder(answer_identity identity, chat_answer_options options) {
  if (options.stream)
    return std::make_unique<chat_stream_encoder>(std::move(identity), options);
  return std::make_unique<chat_plain_encoder>(std::move(identity), options);
}

} // namespace troupe
