#include "io/responses_socket.hpp"

#include <deque>
#include <map>

#include "io/prepared_response.hpp"
#include "io/wire/json_writer.hpp"

namespace troupe {
namespace {

// A response that was submitted.
struct running_response {
  std::uint64_t run = 0;     // as the inbox names it
  std::uint64_t request = 0; // as the runtime names it
  bool started = false;
  std::optional<steady_time> silent_since; // as the ticks see it; absent: an event came after the last one
  std::size_t bytes = 0;
  prepared_response prepared;
  std::optional<response_event> held_back; // its end, until the response is kept
};

struct waiting_response {
  std::size_t bytes = 0; // of its message
  responses_request request;
};

struct lane {
  std::deque<waiting_response> waiting;
  std::optional<running_response> running;
};

std::string steer_failed(const socket_event& event) {
  std::string out;
  json_writer w(out);
  w.begin_object().string("type", "response.steer.failed").integer("sequence_number", 0);
  w.raw("error", error_object({errc::unsupported, "Responses can't be steered here.", {}, "steer_not_supported"}));
  w.key("steer")
      .begin_object()
      .string("previous_response_id", event.previous_response_id)
      .raw("input", event.input)
      .end_object();
  if (!event.stream_id.empty())
    w.string("stream_id", event.stream_id);
  w.end_object();
  return out;
}

class responses_socket final : public socket_session {
public:
  responses_socket(edge_core& core, std::shared_ptr<event_inbox> inbox, std::string tenant)
      : core_(core), inbox_(std::move(inbox)), tenant_(std::move(tenant)),
        stored_({static_cast<std::size_t>(limits::socket_stored_responses_max), limits::socket_stored_bytes_max}),
        opened_(std::chrono::steady_clock::now()), held_(core.input), kept_(core.socket_responses) {}

  void on_message(std::string_view payload, bool binary, socket_output& out) override;
  void on_event(run_event& event, socket_output& out) override;
  void on_tick(steady_time now, socket_output& out) override;
  void on_drain(socket_output& out) override;
  void cancel_all() noexcept override;
  void on_gone() noexcept override;

private:
  void create(std::string_view payload, const std::string& stream_id, socket_output& out);
  void cancel(const socket_event& event, socket_output& out);
  // Starts the lane's next response, if it has one and none runs; forgets the lane when it is empty.
  void advance(const std::string& stream_id, socket_output& out);
  void start(lane& in, responses_request request, socket_output& out);
  bool on_generated(running_response& running, const generation_event& event, socket_output& out);
  void on_kept(running_response& running, const result<void>& outcome, socket_output& out);
  void refuse(const wire_fault& fault, std::string_view stream_id, socket_output& out);
  void end_stalled(steady_time now, socket_output& out);
  void expire(socket_output& out);
  bool idle() const noexcept { return lanes_.empty(); }
  // Whether the edge has room for `more` bytes besides what this socket holds; then they are its own.
  bool hold(std::size_t more) { return held_.resize(waiting_bytes_ + running_bytes_ + more); }

  edge_core& core_;
  std::shared_ptr<event_inbox> inbox_;
  const std::string tenant_;
  response_store stored_;
  const steady_time opened_;
  std::map<std::string, lane> lanes_; // by stream_id; only those with work
  std::map<std::uint64_t, std::string> lane_of_run_;
  std::uint64_t runs_ = 0;
  std::size_t waiting_bytes_ = 0;
  std::size_t running_bytes_ = 0;
  byte_share held_; // both
  byte_share kept_; // stored_
  bool draining_ = false; // the server's end
  bool expired_ = false;  // the socket's life is over
  std::vector<response_event> events_;
};

void responses_socket::on_message(std::string_view payload, bool binary, socket_output& out) {
  if (binary) {
    out.close = {close_code::unknown_data, "Only text messages are served here."};
    return;
  }
  socket_event event;
  if (const auto fault = parse_socket_event(payload, event))
    return refuse(*fault, event.stream_id, out);
  if (event.type == "response.create")
    return create(payload, event.stream_id, out);
  if (event.type == "response.cancel")
    return cancel(event, out);
  if (event.type == "response.steer")
    return out.text(steer_failed(event));
  refuse({errc::invalid_argument, "Events of type '" + event.type + "' are not known.", "type", "unknown_event_type"},
         event.stream_id, out);
}

void responses_socket::create(std::string_view payload, const std::string& stream_id, socket_output& out) {
  ++core_.counters.requests_total;
  responses_request request;
  if (const auto fault = parse_responses_request(payload, request))
    return refuse(*fault, stream_id, out);
  if (expired_)
    return refuse({errc::invalid_argument,
                   "This socket has reached its age limit; open a new one.",
                   {},
                   "websocket_connection_limit_reached"},
                  stream_id, out);
  if (draining_)
    return refuse({errc::shutting_down, "The server shuts down.", {}, {}}, stream_id, out);
  const auto found = lanes_.find(stream_id);
  if (found == lanes_.end() && lanes_.size() >= static_cast<std::size_t>(limits::websocket_lanes_max))
    return refuse(
        {errc::queue_full, "The socket has " + std::to_string(limits::websocket_lanes_max) + " lanes in use already.", {}, {}},
        stream_id, out);
  if (found != lanes_.end() && found->second.waiting.size() >= static_cast<std::size_t>(limits::websocket_lane_queue_max))
    return refuse({errc::queue_full,
                   "The lane has " + std::to_string(limits::websocket_lane_queue_max) + " requests waiting already.",
                   {},
                   {}},
                  stream_id, out);
  if (waiting_bytes_ + payload.size() > limits::websocket_waiting_bytes_max || !hold(payload.size()))
    return refuse({errc::queue_full, "The requests that wait already are too large.", {}, {}}, stream_id, out);
  waiting_bytes_ += payload.size();
  lanes_[stream_id].waiting.push_back({payload.size(), std::move(request)});
  advance(stream_id, out);
}

void responses_socket::advance(const std::string& stream_id, socket_output& out) {
  const auto it = lanes_.find(stream_id);
  if (it == lanes_.end())
    return;
  lane& in = it->second;
  while (!in.running && !in.waiting.empty()) {
    waiting_response next = std::move(in.waiting.front());
    in.waiting.pop_front();
    waiting_bytes_ -= next.bytes;
    start(in, std::move(next.request), out);
  }
  if (!in.running)
    lanes_.erase(it);
}

void responses_socket::start(lane& in, responses_request request, socket_output& out) {
  const std::string stream_id = request.stream_id;
  running_response next;
  if (const auto fault = prepare_response(core_, &stored_, tenant_, std::move(request), next.prepared))
    return refuse(*fault, stream_id, out);
  next.bytes = bytes_of(next.prepared);
  if (!hold(next.bytes))
    return refuse({errc::queue_full, "The server holds as many requests as its memory allows; try again later.", {}, {}}, stream_id,
                  out);
  next.run = ++runs_;
  const auto submitted = core_.port.submit(std::move(next.prepared.generation), inbox_->sink(next.run));
  if (!submitted)
    return refuse(to_wire(submitted.fault()), stream_id, out);
  next.request = *submitted;
  lane_of_run_.emplace(next.run, stream_id);
  running_bytes_ += next.bytes;
  in.running = std::move(next);
}

void responses_socket::on_event(run_event& event, socket_output& out) {
  const auto known = lane_of_run_.find(event.run);
  if (known == lane_of_run_.end())
    return;
  const std::string stream_id = known->second;
  running_response& running = *lanes_.at(stream_id).running;
  running.silent_since.reset();
  const auto* generated = std::get_if<generation_event>(&event.event);
  const auto* failed = generated ? std::get_if<generation_failed>(generated) : nullptr;
  if (running.held_back && failed) // it made no progress in time
    on_kept(running, failed->fault, out);
  else if (!generated)
    on_kept(running, std::get<keeping_ended>(event.event).outcome, out);
  else if (failed && !running.started)
    refuse(to_wire(failed->fault), stream_id, out);
  else if (!on_generated(running, *generated, out))
    return;
  while (!kept_.resize(stored_.bytes()) && stored_.drop_oldest()) {
  }
  running_bytes_ -= running.bytes;
  (void)hold(0);
  lane_of_run_.erase(known);
  lanes_.at(stream_id).running.reset();
  advance(stream_id, out);
  if (idle() && draining_)
    out.close = {close_code::going_away, "The server shuts down."};
  else if (idle() && expired_)
    expire(out);
}

// true: the response has ended, and its end was told.
bool responses_socket::on_generated(running_response& running, const generation_event& event, socket_output& out) {
  const responses_stream& stream = *running.prepared.stream;
  running.started = true;
  events_.clear();
  running.prepared.stream->consume(event, events_);
  if (stream.continuable()) {
    response_store& store = running.prepared.store ? core_.responses : stored_;
    if (store.put(to_stored(running.prepared), inbox_->keeper(running.run)) == store_answer::under_way) {
      running.held_back = std::move(events_.back());
      events_.pop_back();
    }
  }
  for (response_event& e : events_)
    out.text(std::move(e.json));
  return stream.ended() && !running.held_back;
}

void responses_socket::on_kept(running_response& running, const result<void>& outcome, socket_output& out) {
  events_.clear();
  if (outcome)
    events_.push_back(std::move(*running.held_back));
  else
    running.prepared.stream->fail_instead(outcome.fault(), events_);
  for (response_event& e : events_)
    out.text(std::move(e.json));
}

void responses_socket::cancel(const socket_event& event, socket_output& out) {
  for (const auto& [stream_id, in] : lanes_) {
    const bool wanted = event.response_id.empty() ? stream_id == event.stream_id
                                                  : in.running && in.running->prepared.stream->id() == event.response_id;
    if (wanted && in.running)
      return core_.port.cancel(in.running->request); // its end comes as an event
  }
  refuse({errc::not_found, "No such response is running.", event.response_id.empty() ? "stream_id" : "response_id",
          "response_not_found"},
         event.stream_id, out);
}

void responses_socket::on_tick(steady_time now, socket_output& out) {
  end_stalled(now, out);
  if (expired_ || draining_ || now - opened_ < limits::websocket_life)
    return;
  expired_ = true;
  if (idle())
    expire(out);
}

// Whatever holds an answer up, its client is not kept waiting for ever.
void responses_socket::end_stalled(steady_time now, socket_output& out) {
  std::vector<std::uint64_t> stalled;
  for (auto& [stream_id, in] : lanes_)
    if (in.running && !in.running->silent_since) {
      in.running->silent_since = now;
    } else if (in.running && now - *in.running->silent_since > limits::answer_stall_deadline) {
      core_.port.cancel(in.running->request);
      stalled.push_back(in.running->run);
    }
  for (const std::uint64_t run : stalled) {
    run_event end{run, generation_failed{{errc::timeout, "The answer made no progress in time."}, {}}};
    on_event(end, out);
  }
}

void responses_socket::expire(socket_output& out) {
  refuse({errc::invalid_argument,
          "This socket has reached its age limit; open a new one.",
          {},
          "websocket_connection_limit_reached"},
         {}, out);
  out.close = {close_code::going_away, "The socket has reached its age limit."};
}

void responses_socket::on_drain(socket_output& out) {
  draining_ = true;
  for (auto& [stream_id, in] : lanes_) {
    for (const waiting_response& each : in.waiting) {
      refuse({errc::shutting_down, "The server shuts down.", {}, {}}, each.request.stream_id, out);
      waiting_bytes_ -= each.bytes;
    }
    in.waiting.clear();
  }
  if (idle())
    out.close = {close_code::going_away, "The server shuts down."};
}

void responses_socket::refuse(const wire_fault& fault, std::string_view stream_id, socket_output& out) {
  ++core_.counters.refusals_total;
  out.text(error_event(fault, stream_id));
}

void responses_socket::cancel_all() noexcept {
  for (const auto& [stream_id, in] : lanes_)
    if (in.running)
      core_.port.cancel(in.running->request);
}

void responses_socket::on_gone() noexcept {
  if (!lanes_.empty())
    ++core_.counters.disconnects_total;
  cancel_all();
  lanes_.clear();
  waiting_bytes_ = running_bytes_ = 0;
  (void)hold(0);
  lane_of_run_.clear();
}

} // namespace

std::unique_ptr<socket_session> make_responses_socket(edge_core& core, std::shared_ptr<event_inbox> inbox, std::string tenant) {
  return std::make_unique<responses_socket>(core, std::move(inbox), std::move(tenant));
}

} // namespace troupe
