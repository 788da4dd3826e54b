// Turns the events of one generation into the bytes of one HTTP answer.
//
// Owns a body encoder and the answer's phase. Promises: nothing is written before the request was started or failed, so that
// a failure found until then keeps its status code; after that a failure is an error object in the stream, which then ends
// without its closing mark. Bytes are appended to a string; sockets are elsewhere. One thread: the connection's.
#pragma once
#include <memory>
#include <string>

#include "io/event_inbox.hpp"
#include "io/http/message.hpp"

namespace troupe {

// What one wire format makes of the events. A streaming encoder appends its events as they come, framed as SSE; one that
// doesn't stream collects, and writes its document at the end.
class body_encoder {
public:
  virtual ~body_encoder() = default;
  virtual bool streams() const noexcept = 0;
  // A streaming one never sees a failure before the start; the other sees no failure and no cancelled end at all. `choice`
  // counts the answers to one request from 0.
  virtual void encode(const generation_event& event, std::string& body, int choice = 0) = 0;

  // One whose answer is kept holds the end back until that has happened: keep_with() says who is to be told, keeping() that it
  // is under way, and kept() writes what was held back, or in a stream that the answer failed.
  virtual void keep_with(written_fn) {}
  virtual bool keeping() const noexcept { return false; }
  virtual void kept(const result<void>&, std::string&) {}
};

class http_answer {
public:
  http_answer(std::unique_ptr<body_encoder> encoder, http_framing framing, int choices = 1)
      : encoder_(std::move(encoder)), framing_(std::move(framing)), open_choices_(choices) {}

  // It ends when all choices have ended, or one failed or was cancelled.
  void consume(const generation_event& event, std::string& out, int choice = 0);
  void consume(const keeping_ended& event, std::string& out);
  // A comment that keeps proxies and clients from giving up while nothing is generated.
  void ping(std::string& out);

  bool streaming() const noexcept { return phase_ == phase::streaming || (phase_ == phase::keeping && encoder_->streams()); }
  bool ended() const noexcept { return phase_ == phase::ended; }
  bool keep_alive() const noexcept { return framing_.keep_alive; }
  void close_after() noexcept { framing_.keep_alive = false; }

private:
  enum class phase { waiting, streaming, keeping, ended };

  void refuse(const error& fault, std::string& out);
  void consume_streaming(const generation_event& event, std::string& out, int choice);
  void end_stream(std::string& out);
  void end_document(std::string& out);

  std::unique_ptr<body_encoder> encoder_;
  http_framing framing_;
  int open_choices_;
  phase phase_ = phase::waiting;
  std::string body_;
};

// "data: <json>\n\n"
void append_sse(std::string& out, std::string_view json);
// "event: <type>\ndata: <json>\n\n"
void append_sse(std::string& out, std::string_view type, std::string_view json);

} // namespace troupe
