#include "io/net/websocket_connection.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <deque>

#include "io/responses_socket.hpp"
#include "io/socket_session.hpp"

namespace troupe {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
namespace websocket = beast::websocket;

constexpr std::uint16_t last_close_code = 4999; // RFC 6455 section 7.4.2

http::request<http::empty_body> handshake_of(const http_request& request) {
  http::request<http::empty_body> handshake(http::verb::get, request.target, static_cast<unsigned>(request.version));
  for (const auto& [name, value] : request.headers)
    if (name != "sec-websocket-extensions") // no compression: nothing to negotiate
      handshake.insert(name, value);
  return handshake;
}

class websocket_connection final : public net_connection, public std::enable_shared_from_this<websocket_connection> {
public:
  websocket_connection(edge_loop& loop, tcp::socket socket)
      : loop_(loop), core_(loop.core), stream_(std::move(socket)), held_(loop.core.input), unsent_(loop.core.answers) {
    ++core_.counters.websockets;
    last_received_ = std::chrono::steady_clock::now();
  }
  ~websocket_connection() override {
    if (inbox_)
      inbox_->close();
    if (session_)
      session_->on_gone();
    loop_.remove(this);
    --core_.counters.websockets;
    core_.connection_ended();
  }

  void start(const http_request& request, const socket_upgrade& upgrade);
  void tick(steady_time now) override;
  void drain() override;
  void cancel() override {
    if (!ended_)
      session_->cancel_all();
  }
  void abort() override { end(); }

private:
  void on_accepted();
  void read();
  void on_message();
  void on_wake();
  void fall_behind();
  void take_events();
  void send(socket_output& out);
  void write();
  void close(socket_close why);
  void refuse_close_code();
  void end();

  edge_loop& loop_;
  edge_core& core_;
  websocket::stream<tcp::socket> stream_;
  http::request<http::empty_body> handshake_; // until it is answered
  std::unique_ptr<socket_session> session_;
  std::shared_ptr<event_inbox> inbox_;
  std::vector<run_event> batch_;

  beast::flat_buffer input_;
  byte_share held_; // input_
  bool reading_ = false;
  steady_time last_received_{};
  std::optional<steady_time> pinged_at_;

  std::deque<socket_frame> queue_; // the front is in flight while writing_
  std::size_t queued_bytes_ = 0;
  byte_share unsent_; // queued_bytes_
  bool writing_ = false;
  steady_time write_began_{};

  std::optional<socket_close> close_after_queue_;
  bool closing_ = false; // our close frame is under way
  steady_time close_deadline_{};
  bool accepted_ = false;
  bool ended_ = false;
};

void websocket_connection::start(const http_request& request, const socket_upgrade& upgrade) {
  loop_.add(shared_from_this());
  inbox_ = std::make_shared<event_inbox>(core_.options.send_queue_bytes_max, core_.answers,
                                         [weak = weak_from_this(), executor = loop_.context.get_executor()] {
                                           asio::post(executor, [weak] {
                                             if (const auto self = weak.lock())
                                               self->on_wake();
                                           });
                                         });
  if (upgrade.kind == socket_kind::echo)
    session_ = make_echo_session();
  else
    session_ = make_responses_socket(core_, inbox_, upgrade.tenant);

  websocket::stream_base::timeout timeouts{};
  timeouts.handshake_timeout = limits::header_deadline;
  timeouts.idle_timeout = websocket::stream_base::none(); // judged by tick()
  timeouts.keep_alive_pings = false;
  stream_.set_option(timeouts);
  stream_.set_option(websocket::stream_base::decorator([protocol = upgrade.subprotocol](websocket::response_type& response) {
    response.set(http::field::server, "troupe");
    if (!protocol.empty())
      response.set(http::field::sec_websocket_protocol, protocol);
  }));
  stream_.read_message_max(std::min(limits::websocket_message_bytes_max, core_.options.memory.body_bytes_max));
  stream_.auto_fragment(false);
  stream_.control_callback([this](websocket::frame_type kind, beast::string_view) {
    last_received_ = std::chrono::steady_clock::now();
    pinged_at_.reset();
    if (kind == websocket::frame_type::close && stream_.reason().code > last_close_code)
      refuse_close_code();
  });
  handshake_ = handshake_of(request);
  stream_.async_accept(handshake_, [self = shared_from_this()](error_code ec) {
    if (ec || self->ended_)
      return self->end();
    self->on_accepted();
  });
}

void websocket_connection::on_accepted() {
  accepted_ = true;
  handshake_ = {};
  if (close_after_queue_)
    return close(*close_after_queue_);
  read();
}

void websocket_connection::read() {
  // A peer that sends faster than it reads is held back by TCP.
  if (reading_ || ended_ || queued_bytes_ > limits::websocket_read_pause_bytes)
    return;
  reading_ = true;
  stream_.async_read_some(input_, 0, [self = shared_from_this()](error_code ec, std::size_t) {
    self->reading_ = false;
    if (ec || self->ended_)
      return self->end();
    self->last_received_ = std::chrono::steady_clock::now();
    self->pinged_at_.reset();
    if (!self->held_.resize(self->input_.size()))
      return self->close({close_code::try_again_later, "The server's memory for messages is used up."});
    if (self->stream_.is_message_done())
      self->on_message();
    self->read();
  });
}

void websocket_connection::on_message() {
  constexpr std::size_t kept_bytes = 16 * 1024; // an idle socket does not hold on to its largest message
  const auto bytes = input_.cdata();
  socket_output out;
  if (!closing_)
    session_->on_message({static_cast<const char*>(bytes.data()), bytes.size()}, stream_.got_binary(), out);
  input_.consume(input_.size());
  if (input_.capacity() > kept_bytes)
    input_.shrink_to_fit();
  (void)held_.resize(0);
  send(out);
}

void websocket_connection::on_wake() {
  if (ended_)
    return;
  if (inbox_->overflowed())
    return fall_behind();
  if (!writing_)
    take_events();
}

void websocket_connection::fall_behind() {
  ++core_.counters.overflows_total;
  inbox_->close();
  session_->on_gone();
  close({close_code::try_again_later, "The client reads too slowly."});
}

void websocket_connection::take_events() {
  inbox_->take(batch_);
  if (batch_.empty())
    return;
  join_deltas(batch_);
  socket_output out;
  for (run_event& e : batch_)
    session_->on_event(e, out);
  batch_.clear();
  send(out);
}

void websocket_connection::send(socket_output& out) {
  if (ended_ || closing_)
    return;
  for (socket_frame& frame : out.frames) {
    queued_bytes_ += frame.payload.size();
    queue_.push_back(std::move(frame));
  }
  if (out.close)
    close_after_queue_ = std::move(out.close);
  if (!unsent_.resize(queued_bytes_))
    return fall_behind();
  if (writing_ || !accepted_)
    return;
  if (!queue_.empty())
    write();
  else if (close_after_queue_)
    close(*close_after_queue_);
}

void websocket_connection::write() {
  writing_ = true;
  write_began_ = std::chrono::steady_clock::now();
  stream_.binary(queue_.front().binary);
  stream_.async_write(asio::buffer(queue_.front().payload), [self = shared_from_this()](error_code ec, std::size_t) {
    self->writing_ = false;
    if (ec || self->ended_)
      return self->end();
    self->queued_bytes_ -= self->queue_.front().payload.size();
    self->queue_.pop_front();
    (void)self->unsent_.resize(self->queued_bytes_); // less than it was
    if (self->closing_)
      return;
    if (!self->queue_.empty()) {
      self->write();
    } else if (self->close_after_queue_) {
      self->close(*self->close_after_queue_);
    } else {
      self->take_events();
    }
    self->read();
  });
}

// The read in flight, if any, takes the peer's answer.
void websocket_connection::close(socket_close why) {
  if (closing_ || ended_)
    return;
  closing_ = true;
  close_deadline_ = std::chrono::steady_clock::now() + limits::header_deadline;
  session_->on_gone();
  inbox_->close();
  websocket::close_reason reason(static_cast<std::uint16_t>(why.code));
  reason.reason = why.reason;
  stream_.async_close(reason, [self = shared_from_this()](error_code) { self->end(); });
}

// Beast would echo the code, which RFC 6455 has no room for; the peer gets 1002 instead.
void websocket_connection::refuse_close_code() {
  static constexpr char protocol_error[] = {'\x88', '\x02', '\x03', '\xea'};
  error_code ignored;
  if (!writing_)
    stream_.next_layer().write_some(asio::buffer(protocol_error), ignored);
  end();
}

void websocket_connection::tick(steady_time now) {
  if (ended_ || !accepted_)
    return;
  if (closing_) {
    if (now > close_deadline_)
      end();
    return;
  }
  if (writing_) { // no pings into a blocked socket: judge by the write
    if (now - write_began_ > limits::write_stall_deadline) {
      ++core_.counters.overflows_total;
      end();
    }
    return;
  }
  socket_output out;
  session_->on_tick(now, out);
  send(out);
  if (closing_ || ended_)
    return;
  if (pinged_at_) {
    if (now - *pinged_at_ > limits::websocket_pong_deadline)
      close({close_code::internal, "No answer to a ping."});
  } else if (now - last_received_ >= limits::websocket_ping_interval) {
    pinged_at_ = now;
    stream_.async_ping({}, [self = shared_from_this()](error_code ec) {
      if (ec)
        self->end();
    });
  }
}

void websocket_connection::drain() {
  if (ended_)
    return;
  socket_output out;
  session_->on_drain(out);
  send(out);
}

void websocket_connection::end() {
  if (ended_)
    return;
  ended_ = true;
  inbox_->close();
  session_->on_gone();
  error_code ignored;
  beast::get_lowest_layer(stream_).close(ignored);
}

} // namespace

void start_websocket_connection(edge_loop& loop, tcp::socket socket, const http_request& request, socket_upgrade upgrade) {
  std::make_shared<websocket_connection>(loop, std::move(socket))->start(request, upgrade);
}

} // namespace troupe
