#include "io/net/http_connection.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/socket_base.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <algorithm>
#include <optional>

#include "base/text.hpp"
#include "io/event_inbox.hpp"
#include "io/net/websocket_connection.hpp"

namespace troupe {
namespace {

namespace http = boost::beast::http;

constexpr std::size_t kept_bytes = 16 * 1024; // of a buffer: an idle connection does not hold on to its largest message

constexpr const char* memory_is_full = "The server holds as many requests as its memory allows; try again later.";

using request_parser = http::request_parser<http::string_body>;

http_request head_of(const request_parser& parser) {
  const auto& message = parser.get();
  http_request request;
  request.method = std::string(message.method_string());
  request.target = std::string(message.target());
  if (ascii_lower(request.target.substr(0, 7)) == "http://") // the absolute form, as a proxy would get it
    request.target = request.target.substr(std::min(request.target.find('/', 7), request.target.size()));
  if (request.target.empty() || request.target[0] == '?')
    request.target.insert(0, "/");
  request.version = static_cast<int>(message.version());
  request.keep_alive = parser.keep_alive();
  for (const auto& field : message)
    request.headers.emplace_back(ascii_lower(std::string_view(field.name_string().data(), field.name_string().size())),
                                 std::string(field.value()));
  return request;
}

class http_connection final : public net_connection, public std::enable_shared_from_this<http_connection> {
public:
  http_connection(edge_loop& loop, tcp::socket socket, bool over_cap)
      : loop_(loop), core_(loop.core), socket_(std::move(socket)), over_cap_(over_cap), held_(loop.core.input), unsent_(loop.core.answers) {
    deadline_ = std::chrono::steady_clock::now() + limits::header_deadline;
  }
  ~http_connection() override {
    if (inbox_)
      inbox_->close();
    loop_.remove(this);
    if (!handed_over_)
      core_.connection_ended();
  }

  void start() {
    loop_.add(shared_from_this());
    wait_readable();
  }

  void tick(steady_time now) override;
  void drain() override;
  void cancel() override {
    for (const std::uint64_t request : running_)
      core_.port.cancel(request);
  }
  void abort() override;

private:
  enum class phase { reading, answering, lingering, closed };

  void wait_readable();
  void on_readable();
  void on_bytes(std::string_view bytes);
  void on_peer_end(bool orderly);

  void parse_input();
  void on_parse_error(error_code ec);
  void on_memory_end();
  void refuse_unread(const http_response& response);
  void count_headless() noexcept { // others are counted with their head
    core_.counters.requests_total += head_seen_ ? 0 : 1;
  }
  void on_head();
  void on_request();
  void begin(generation_job job);
  void begin(erase_job job);
  void number_runs(int choices);
  result<std::vector<std::uint64_t>> submit(generation_request request);
  event_inbox& inbox();
  void upgrade(socket_upgrade wanted);
  void respond(const http_response& response);

  void on_wake();
  void take_events();
  void consume(const run_event& e);
  void on_erased();
  void on_stall();
  void flush();
  void write_some();
  void on_written();
  void finish();
  void linger();
  void drop(); // for a peer that does not read
  void close();

  edge_loop& loop_;
  edge_core& core_;
  tcp::socket socket_;
  const bool over_cap_;

  phase phase_ = phase::reading;
  bool waiting_ = false; // for the socket to become readable
  bool draining_ = false;
  bool handed_over_ = false;
  steady_time deadline_{}; // of reading and lingering

  std::string input_; // received, not yet parsed
  byte_share held_;   // input_, the body that arrives, the request that is answered
  std::size_t asked_bytes_ = 0; // of that request
  std::optional<request_parser> parser_;
  bool head_seen_ = false;
  http_request request_;
  http_framing framing_;
  std::size_t lingered_bytes_ = 0;

  std::shared_ptr<event_inbox> inbox_;
  std::vector<run_event> batch_;
  std::uint64_t run_ = 0;  // of the answer's first choice; counts this connection's generations
  std::uint64_t runs_ = 1; // one a choice
  std::vector<std::uint64_t> running_; // as the runtime names them; until the answer's end is in out_
  std::optional<http_answer> answer_;
  std::optional<erase_job> erasing_;
  bool ending_ = false; // all of the answer is in out_

  std::string out_;     // waits for the write in flight
  std::string sending_; // in flight
  byte_share unsent_;   // both
  std::size_t sent_ = 0;
  bool writing_ = false;
  steady_time last_progress_{};
  steady_time last_event_{};
};

// ---- reading ----

void http_connection::wait_readable() {
  if (waiting_ || phase_ == phase::closed)
    return;
  waiting_ = true;
  socket_.async_wait(tcp::socket::wait_read, [self = shared_from_this()](error_code ec) {
    self->waiting_ = false;
    if (!ec)
      self->on_readable();
  });
}

void http_connection::on_readable() {
  constexpr int rounds = 16; // then the loop's other connections get their turn
  for (int round = 0; round < rounds && phase_ != phase::closed; ++round) {
    error_code ec;
    const std::size_t n = socket_.read_some(asio::buffer(loop_.scratch), ec);
    if (ec == asio::error::would_block)
      break;
    if (ec)
      return on_peer_end(ec == asio::error::eof);
    on_bytes({loop_.scratch.data(), n});
    if (n < loop_.scratch.size())
      break;
  }
  wait_readable();
}

void http_connection::on_bytes(std::string_view bytes) {
  if (phase_ == phase::lingering) {
    lingered_bytes_ += bytes.size();
    if (lingered_bytes_ > limits::linger_bytes_max)
      close();
    return;
  }
  if (phase_ == phase::answering && ending_ && !framing_.keep_alive)
    return; // the rest of a body that was refused
  input_ += bytes;
  if (phase_ == phase::reading)
    parse_input();
  if (phase_ == phase::answering && (input_.size() > limits::pipelined_bytes_max || !held_.resize(asked_bytes_ + input_.size())))
    abort();
}

// A peer that closed its half has gone, but what is complete is still written out to it.
void http_connection::on_peer_end(bool orderly) {
  if (phase_ == phase::answering && ending_ && orderly) {
    framing_.keep_alive = false;
    return;
  }
  if (!running_.empty())
    ++core_.counters.disconnects_total;
  abort();
}

void http_connection::parse_input() {
  while (phase_ == phase::reading && !input_.empty()) {
    if (!parser_) {
      parser_.emplace();
      parser_->header_limit(static_cast<std::uint32_t>(limits::header_bytes_max));
      parser_->body_limit(core_.options.memory.body_bytes_max);
      head_seen_ = false;
      deadline_ = std::chrono::steady_clock::now() + limits::header_deadline;
    }
    error_code ec;
    const std::size_t used = parser_->put(asio::buffer(input_), ec);
    input_.erase(0, used);
    if (ec == http::error::need_more && head_seen_ && input_.size() > limits::header_bytes_max)
      ec = http::error::header_limit; // of a chunk or a trailer
    if (!held_.resize(input_.size() + parser_->get().body().size()))
      return on_memory_end();
    if (ec == http::error::need_more)
      return;
    if (ec)
      return on_parse_error(ec);
    if (!head_seen_ && parser_->is_header_done()) {
      head_seen_ = true;
      on_head();
    }
    if (phase_ != phase::reading)
      return;
    if (parser_->is_done())
      return on_request();
  }
}

// The last answer of the connection: its request is not read to its end, and may not even have a head.
void http_connection::refuse_unread(const http_response& response) {
  if (!head_seen_) {
    framing_ = {};
    framing_.request_id = core_.make_id("req_");
  }
  framing_.keep_alive = false;
  respond(response);
}

void http_connection::on_parse_error(error_code ec) {
  count_headless();
  if (ec == http::error::body_limit)
    return refuse_unread(
        error_response({errc::too_large, "The body exceeds " + std::to_string(core_.options.memory.body_bytes_max) + " bytes.", {}, {}}));
  http_response response =
      error_response({errc::invalid_argument, "The request is not valid HTTP: " + ec.message() + ".", {}, "invalid_http"});
  if (ec == http::error::header_limit) {
    response =
        error_response({errc::too_large, "The header exceeds " + std::to_string(limits::header_bytes_max) + " bytes.", {}, {}});
    response.status = 431;
  }
  refuse_unread(response);
}

void http_connection::on_memory_end() {
  count_headless();
  refuse_unread(
      error_response({errc::queue_full, memory_is_full, {}, {}}));
}

void http_connection::on_head() {
  ++core_.counters.requests_total;
  request_ = head_of(*parser_);
  framing_ = {request_.version, request_.keep_alive && !draining_, request_.method == "HEAD", core_.make_id("req_"),
              core_.access.cors_headers(request_)};
  const bool body_unread = !parser_->is_done();
  if (over_cap_) {
    framing_.keep_alive = false;
    return respond(error_response({errc::queue_full, "The server has too many connections.", {}, {}}));
  }
  if (const auto refusal = loop_.routes.screen(request_)) {
    framing_.keep_alive = framing_.keep_alive && !body_unread;
    return respond(*refusal);
  }
  if (body_unread && (request_.method == "GET" || request_.method == "HEAD")) {
    framing_.keep_alive = false;
    return respond(error_response({errc::invalid_argument, "A " + request_.method + " has no body here.", {}, "unexpected_body"}));
  }
  deadline_ = std::chrono::steady_clock::now() + limits::body_deadline;
  if (body_unread && request_.version >= 11 && ascii_lower(request_.header("expect")) == "100-continue") {
    out_ += "HTTP/1.1 100 Continue\r\n\r\n";
    flush();
  }
}

// ---- answering ----

void http_connection::on_request() {
  request_.body = std::move(parser_->get().body());
  asked_bytes_ = request_.body.size();
  parser_.reset();
  phase_ = phase::answering;
  try {
    route_reply reply = loop_.routes.handle(request_);
    release_memory(request_.body);
    if (const auto* response = std::get_if<http_response>(&reply))
      respond(*response);
    else if (auto* job = std::get_if<generation_job>(&reply))
      begin(std::move(*job));
    else if (auto* erasing = std::get_if<erase_job>(&reply))
      begin(std::move(*erasing));
    else
      upgrade(std::move(std::get<socket_upgrade>(reply)));
  } catch (const std::exception& e) {
    log_to(core_.log, log_level::error,
           std::string("edge: ") + request_.method + " " + std::string(request_.path()) + ": " + e.what());
    answer_.reset();
    framing_.keep_alive = false;
    respond(error_response({errc::internal, "The server made a mistake; its log has the details.", {}, {}}));
  }
}

event_inbox& http_connection::inbox() {
  if (!inbox_)
    inbox_ = std::make_shared<event_inbox>(core_.options.send_queue_bytes_max, core_.answers,
                                           [weak = weak_from_this(), executor = loop_.context.get_executor()] {
                                             asio::post(executor, [weak] {
                                               if (const auto self = weak.lock())
                                                 self->on_wake();
                                             });
                                           });
  return *inbox_;
}

// The runs that follow are this many, and events of earlier ones are nobody's.
void http_connection::number_runs(int choices) {
  run_ += runs_;
  runs_ = static_cast<std::uint64_t>(choices);
}

void http_connection::begin(erase_job job) {
  number_runs(1);
  if (const auto response = loop_.routes.erase(job, inbox().keeper(run_)))
    return respond(*response);
  erasing_ = std::move(job);
  last_event_ = std::chrono::steady_clock::now();
}

void http_connection::begin(generation_job job) {
  // A body may be longer than what it says, and name a stored conversation that is longer than itself.
  if (!held_.resize(input_.size() + job.bytes))
    return respond(error_response({errc::queue_full, memory_is_full, {}, {}}));
  asked_bytes_ = job.bytes;
  number_runs(job.choices);
  job.encoder->keep_with(inbox().keeper(run_));
  answer_.emplace(std::move(job.encoder), framing_, job.choices);
  const auto submitted = submit(std::move(job.request));
  if (submitted) {
    running_ = *submitted;
    last_event_ = std::chrono::steady_clock::now();
    return;
  }
  ++core_.counters.refusals_total;
  answer_->consume(generation_failed{submitted.fault(), {}}, out_);
  ending_ = true;
  flush();
}

result<std::vector<std::uint64_t>> http_connection::submit(generation_request request) {
  if (runs_ == 1) {
    const auto number = core_.port.submit(std::move(request), inbox().sink(run_));
    return number ? result(std::vector{*number}) : number.fault();
  }
  std::vector<std::shared_ptr<event_sink>> sinks;
  for (std::uint64_t i = 0; i < runs_; ++i)
    sinks.push_back(inbox().sink(run_ + i));
  return core_.port.submit_choices(std::move(request), std::move(sinks));
}

void http_connection::upgrade(socket_upgrade wanted) {
  if (!input_.empty()) { // RFC 6455: no frame before the handshake was answered
    framing_.keep_alive = false;
    return respond(error_response({errc::invalid_argument, "Data came before the handshake was answered.", {}, "early_data"}));
  }
  phase_ = phase::closed;
  handed_over_ = true;
  error_code ignored;
  socket_.cancel(ignored);
  start_websocket_connection(loop_, std::move(socket_), request_, std::move(wanted));
}

void http_connection::respond(const http_response& response) {
  phase_ = phase::answering;
  if (response.status >= 400)
    ++core_.counters.refusals_total;
  append_response(out_, response, framing_);
  ending_ = true;
  flush();
}

void http_connection::on_wake() {
  if (phase_ != phase::answering)
    return;
  if (inbox_->overflowed()) {
    ++core_.counters.overflows_total;
    return drop();
  }
  if (!writing_)
    take_events();
}

void http_connection::take_events() {
  if (erasing_)
    return on_erased();
  if (!answer_ || running_.empty())
    return;
  inbox_->take(batch_);
  if (!batch_.empty())
    last_event_ = std::chrono::steady_clock::now();
  for (const run_event& e : batch_)
    if (e.run >= run_ && e.run - run_ < runs_)
      consume(e);
  batch_.clear();
  if (answer_->ended()) {
    if (runs_ > 1)
      cancel(); // what is left after one choice failed
    running_.clear();
    ending_ = true;
  }
  flush();
}

void http_connection::consume(const run_event& e) {
  if (const auto* generated = std::get_if<generation_event>(&e.event))
    answer_->consume(*generated, out_, static_cast<int>(e.run - run_));
  else
    answer_->consume(std::get<keeping_ended>(e.event), out_);
}

void http_connection::on_erased() {
  inbox_->take(batch_);
  for (const run_event& e : batch_)
    if (const auto* ended = std::get_if<keeping_ended>(&e.event); ended && e.run == run_ && erasing_)
      respond(loop_.routes.erased(*std::exchange(erasing_, std::nullopt), ended->outcome));
  batch_.clear();
}

// Whatever holds the answer up, its client is not kept waiting for ever.
void http_connection::on_stall() {
  if (erasing_)
    return respond(loop_.routes.erased(*std::exchange(erasing_, std::nullopt), fail(errc::timeout, "the disk made no progress in time")));
  cancel();
  running_.clear(); // what still comes of it is nobody's
  answer_->consume(generation_failed{{errc::timeout, "The answer made no progress in time."}, {}}, out_);
  ending_ = true;
  flush();
}

// ---- writing ----

void http_connection::flush() {
  if (writing_ || phase_ == phase::closed)
    return;
  if (out_.empty()) {
    if (ending_)
      finish();
    return;
  }
  if (!unsent_.resize(out_.size())) {
    ++core_.counters.overflows_total;
    return drop();
  }
  sending_.swap(out_);
  out_.clear();
  sent_ = 0;
  writing_ = true;
  last_progress_ = std::chrono::steady_clock::now();
  write_some();
}

void http_connection::write_some() {
  socket_.async_write_some(asio::buffer(sending_.data() + sent_, sending_.size() - sent_),
                           [self = shared_from_this()](error_code ec, std::size_t n) {
                             if (self->phase_ == phase::closed)
                               return;
                             if (ec)
                               return self->on_peer_end(false);
                             self->last_progress_ = std::chrono::steady_clock::now();
                             self->sent_ += n;
                             if (self->sent_ < self->sending_.size())
                               return self->write_some();
                             self->on_written();
                           });
}

void http_connection::on_written() {
  writing_ = false;
  sending_.clear();
  if (sending_.capacity() > kept_bytes)
    release_memory(sending_);
  if (phase_ == phase::answering && !running_.empty())
    take_events();
  else
    flush();
}

void http_connection::finish() {
  ending_ = false;
  answer_.reset();
  asked_bytes_ = 0;
  if (!framing_.keep_alive || draining_)
    return linger();
  phase_ = phase::reading;
  parser_.reset();
  for (std::string* each : {&input_, &out_})
    if (each->empty() && each->capacity() > kept_bytes)
      release_memory(*each);
  (void)held_.resize(input_.size()); // at most what it was
  deadline_ = std::chrono::steady_clock::now() + limits::idle_connection_deadline;
  parse_input();
  wait_readable();
}

// Closing with unread bytes would reset the connection and could take the answer with it.
void http_connection::linger() {
  error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  phase_ = phase::lingering;
  parser_.reset();
  release_memory(input_);
  (void)held_.resize(0);
  deadline_ = std::chrono::steady_clock::now() + limits::linger_deadline;
  wait_readable();
}

// ---- ends ----

void http_connection::tick(steady_time now) {
  if (writing_ && now - last_progress_ > limits::write_stall_deadline) {
    ++core_.counters.overflows_total;
    return drop();
  }
  switch (phase_) {
  case phase::reading:
    if (now <= deadline_)
      return;
    if (!parser_)
      return close();
    return refuse_unread(error_response({errc::timeout, "The request did not arrive in time.", {}, {}}));
  case phase::answering:
    if ((!running_.empty() || erasing_) && now - last_event_ > limits::answer_stall_deadline)
      return on_stall();
    if (answer_ && answer_->streaming() && !writing_ && now - last_progress_ >= limits::sse_ping_interval) {
      answer_->ping(out_);
      flush();
    }
    return;
  case phase::lingering:
    if (now > deadline_)
      close();
    return;
  case phase::closed: return;
  }
}

void http_connection::drain() {
  draining_ = true;
  framing_.keep_alive = false;
  if (answer_)
    answer_->close_after();
  if (phase_ == phase::lingering || (phase_ == phase::reading && !parser_))
    close();
}

void http_connection::abort() {
  cancel();
  running_.clear();
  close();
}

void http_connection::drop() {
  error_code ignored;
  socket_.set_option(asio::socket_base::linger(true, 0), ignored);
  abort();
}

void http_connection::close() {
  if (phase_ == phase::closed)
    return;
  phase_ = phase::closed;
  if (inbox_)
    inbox_->close();
  error_code ignored;
  socket_.close(ignored);
}

} // namespace

void start_http_connection(edge_loop& loop, tcp::socket socket, bool over_cap) {
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.non_blocking(true, ignored);
  std::make_shared<http_connection>(loop, std::move(socket), over_cap)->start();
}

} // namespace troupe
