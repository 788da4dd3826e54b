#include "io/wire/completion.hpp"
#include "io/wire/http_status.hpp"

namespace troupe {
namespace {

// The old parallel-array form: tokens, token_logprobs, top_logprobs, text_offset.
void write_logprobs(json_writer& w, const std::vector<text_logprob>& values, std::size_t offset) {
  if (values.empty()) {
    w.null("logprobs");
    return;
  }
  w.key("logprobs").begin_object().key("tokens").begin_array();
  for (const text_logprob& value : values)
    w.string(value.token);
  w.end_array().key("token_logprobs").begin_array();
  for (const text_logprob& value : values)
    w.number(static_cast<double>(value.logprob));
  w.end_array().key("top_logprobs").begin_array();
  for (const text_logprob& value : values) {
    w.begin_object();
    for (const auto& [token, logprob] : value.top)
      w.number(token, static_cast<double>(logprob));
    w.end_object();
  }
  w.end_array().key("text_offset").begin_array();
  for (const text_logprob& value : values) {
    w.integer(static_cast<std::int64_t>(offset));
    offset += value.token.size();
  }
  w.end_array().end_object();
}

class completion_encoder final : public body_encoder {
public:
  completion_encoder(answer_identity identity, completion_answer_options options)
      : identity_(std::move(identity)), options_(options) {}

  bool streams() const noexcept override { return options_.stream; }

  void encode(const generation_event& event, std::string& body, int) override {
    if (const auto* text = std::get_if<text_delta>(&event)) {
      on_text(*text, body);
    } else if (const auto* reasoning = std::get_if<reasoning_delta>(&event)) {
      on_text({reasoning->text, {}}, body); // a raw prompt has raw text: nothing is set apart
    } else if (const auto* finished = std::get_if<generation_finished>(&event)) {
      on_end(*finished, body);
    } else if (const auto* failed = std::get_if<generation_failed>(&event)) {
      append_sse(body, error_body(to_wire(failed->fault)));
    }
  }

private:
  void write(std::string& out, std::string_view text, const std::vector<text_logprob>& logprobs, std::string_view finish,
             const token_usage* usage) const {
    json_writer w(out);
    begin(w);
    w.begin_object().string("text", text).integer("index", 0);
    write_logprobs(w, logprobs, offset_);
    if (finish.empty())
      w.null("finish_reason");
    else
      w.string("finish_reason", finish);
    w.end_object().end_array();
    if (usage) {
      w.key("usage");
      write_usage(w, *usage);
    } else if (options_.include_usage) {
      w.null("usage");
    }
    w.end_object();
  }

  void begin(json_writer& w) const {
    w.begin_object().string("id", identity_.id).string("object", "text_completion").integer("created", identity_.created);
    w.string("model", identity_.model).key("choices").begin_array();
  }

  void on_text(const text_delta& e, std::string& body) {
    if (!options_.stream) {
      text_ += e.text;
      logprobs_.insert(logprobs_.end(), e.logprobs.begin(), e.logprobs.end());
      return;
    }
    json_.clear();
    write(json_, e.text, e.logprobs, "", nullptr);
    append_sse(body, json_);
    for (const text_logprob& value : e.logprobs)
      offset_ += value.token.size();
  }

  void on_end(const generation_finished& e, std::string& body) {
    if (!options_.stream)
      return write(body, text_, logprobs_, finish_reason_name(e.reason), &e.usage);
    if (e.reason == finish_reason::cancelled)
      return append_sse(body, error_body({errc::cancelled, "The request was cancelled.", {}, {}}));
    json_.clear();
    write(json_, "", {}, finish_reason_name(e.reason), nullptr);
    append_sse(body, json_);
    if (options_.include_usage) {
      json_.clear();
      json_writer w(json_);
      begin(w);
      w.end_array().key("usage");
      write_usage(w, e.usage);
      w.end_object();
      append_sse(body, json_);
    }
    append_sse(body, "[DONE]");
  }

  answer_identity identity_;
  completion_answer_options options_;
  std::string text_;
  std::vector<text_logprob> logprobs_;
  std::size_t offset_ = 0; // of the next streamed token in the text
  std::string json_;
};

} // namespace

std::unique_ptr<body_encoder> make_completion_encoder(answer_identity identity, completion_answer_options options) {
  return std::make_unique<completion_encoder>(std::move(identity), options);
}

} // namespace troupe
