#include "io/http/answer.hpp"

namespace troupe {
namespace {

bool is_end(const generation_event& event) {
  return std::holds_alternative<generation_finished>(event) || std::holds_alternative<generation_failed>(event);
}

} // namespace

void http_answer::refuse(const error& fault, std::string& out) {
  append_response(out, error_response(to_wire(fault)), framing_);
  phase_ = phase::ended;
}

void http_answer::consume(const generation_event& event, std::string& out) {
  if (phase_ == phase::ended)
    return;
  if (const auto* failed = std::get_if<generation_failed>(&event); failed && phase_ == phase::waiting)
    return refuse(failed->fault, out);
  if (encoder_->streams())
    return consume_streaming(event, out);
  const auto* finished = std::get_if<generation_finished>(&event);
  if (finished && finished->reason == finish_reason::cancelled)
    return refuse({errc::cancelled, "The request was cancelled."}, out);
  encoder_->encode(event, body_);
  if (finished) {
    append_response(out, json_response(std::move(body_)), framing_);
    phase_ = phase::ended;
  }
}

void http_answer::consume_streaming(const generation_event& event, std::string& out) {
  if (phase_ == phase::waiting) {
    append_stream_head(out, framing_);
    phase_ = phase::streaming;
  }
  body_.clear();
  encoder_->encode(event, body_);
  append_stream_bytes(out, body_, framing_);
  if (is_end(event)) {
    append_stream_end(out, framing_);
    phase_ = phase::ended;
  }
}

void http_answer::ping(std::string& out) {
  if (phase_ == phase::streaming)
    append_stream_bytes(out, ": ping\n\n", framing_);
}

void append_sse(std::string& out, std::string_view json) {
  out += "data: ";
  out += json;
  out += "\n\n";
}

void append_sse(std::string& out, std::string_view type, std::string_view json) {
  out += "event: ";
  out += type;
  out += '\n';
  append_sse(out, json);
}

} // namespace troupe
