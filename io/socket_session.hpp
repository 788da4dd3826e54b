// What a WebSocket carries, apart from the socket: messages and events in, frames out.
//
// A session owns its conversation's state. Promises of every session: it never blocks, and lets go of its requests when the
// peer goes. Thread: its connection's.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "io/event_inbox.hpp"

namespace troupe {

// RFC 6455's close codes, as far as the edge sends them.
enum class close_code : std::uint16_t {
  normal = 1000,
  going_away = 1001,
  unknown_data = 1003,
  policy = 1008,
  internal = 1011,
  try_again_later = 1013,
};

struct socket_frame {
  std::string payload;
  bool binary = false;
};

struct socket_close {
  close_code code = close_code::normal;
  std::string reason; // at most 123 bytes
};

// What a session wants written: the frames in order, then the close if there is one.
struct socket_output {
  std::vector<socket_frame> frames;
  std::optional<socket_close> close;

  void text(std::string payload) { frames.push_back({std::move(payload), false}); }
};

class socket_session {
public:
  virtual ~socket_session() = default;
  virtual void on_message(std::string_view payload, bool binary, socket_output& out) = 0;
  virtual void on_event(run_event& event, socket_output& out) = 0;
  // Time passed: the life of the socket is judged here.
  virtual void on_tick(steady_time now, socket_output& out) = 0;
  // No new work; close with 1001 once what runs has ended.
  virtual void on_drain(socket_output& out) = 0;
  // What runs is cancelled; its end still comes as an event.
  virtual void cancel_all() noexcept = 0;
  // The peer has left: what runs is cancelled and forgotten.
  virtual void on_gone() noexcept = 0;
};

// Sends back what it gets.
std::unique_ptr<socket_session> make_echo_session();

} // namespace troupe
