#include "io/http/answer.hpp"

namespace troupe {
namespace {

bool is_end(const generation_event& event) {
  return std::holds_alternative<generation_finished>(event) || std::holds_alternative<generation_failed>(event);
}

// No choice goes on after it.
bool ends_all(const generation_event& event) {
  const auto* finished = std::get_if<generation_finished>(&event);
  return finished ? finished->reason == finish_reason::cancelled : is_end(event);
}

} // namespace

void http_answer::refuse(const error& fault, std::string& out) {
  append_response(out, error_response(to_wire(fault)), framing_);
  phase_ = phase::ended;
}

void http_answer::consume(const generation_event& event, std::string& out, int choice) {
  if (phase_ == phase::ended)
    return;
  const auto* failed = std::get_if<generation_failed>(&event);
  if (phase_ == phase::keeping)
    return failed ? consume(keeping_ended{failed->fault}, out) : void();
  if (failed && phase_ == phase::waiting)
    return refuse(failed->fault, out);
  open_choices_ -= is_end(event) ? 1 : 0;
  if (encoder_->streams())
    return consume_streaming(event, out, choice);
  if (ends_all(event))
    return refuse({errc::cancelled, "The request was cancelled."}, out);
  encoder_->encode(event, body_, choice);
  if (encoder_->keeping())
    phase_ = phase::keeping;
  else if (open_choices_ == 0)
    end_document(out);
}

void http_answer::consume_streaming(const generation_event& event, std::string& out, int choice) {
  if (phase_ == phase::waiting) {
    append_stream_head(out, framing_);
    phase_ = phase::streaming;
  }
  body_.clear();
  encoder_->encode(event, body_, choice);
  append_stream_bytes(out, body_, framing_);
  if (encoder_->keeping())
    phase_ = phase::keeping;
  else if (open_choices_ == 0 || ends_all(event))
    end_stream(out);
}

void http_answer::consume(const keeping_ended& event, std::string& out) {
  if (phase_ != phase::keeping)
    return;
  if (!encoder_->streams() && !event.outcome)
    return refuse(event.outcome.fault(), out);
  body_.clear();
  encoder_->kept(event.outcome, body_);
  if (!encoder_->streams())
    return end_document(out);
  append_stream_bytes(out, body_, framing_);
  end_stream(out);
}

void http_answer::end_stream(std::string& out) {
  append_stream_end(out, framing_);
  phase_ = phase::ended;
}

void http_answer::end_document(std::string& out) {
  append_response(out, json_response(std::move(body_)), framing_);
  phase_ = phase::ended;
}

void http_answer::ping(std::string& out) {
  if (streaming())
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
