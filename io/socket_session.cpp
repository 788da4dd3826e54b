#include "io/socket_session.hpp"

namespace troupe {
namespace {

class echo_session final : public socket_session {
public:
  void on_message(std::string_view payload, bool binary, socket_output& out) override {
    out.frames.push_back({std::string(payload), binary});
  }
  void on_event(run_event&, socket_output&) override {}
  void on_tick(steady_time, socket_output&) override {}
  void on_drain(socket_output& out) override { out.close = {close_code::going_away, "The server shuts down."}; }
  void cancel_all() noexcept override {}
  void on_gone() noexcept override {}
};

} // namespace

std::unique_ptr<socket_session> make_echo_session() {
  return std::make_unique<echo_session>();
}

} // namespace troupe
