#include "io/net/edge_loop.hpp"

#include <vector>

namespace troupe {

void edge_loop::add(const std::shared_ptr<net_connection>& connection) {
  connections_.emplace(connection.get(), connection);
  if (!ticking_)
    arm();
}

void edge_loop::remove(net_connection* connection) {
  connections_.erase(connection);
}

// Over a copy, as any call may end connections.
template <class F>
void edge_loop::for_each(F f) {
  std::vector<std::shared_ptr<net_connection>> alive;
  alive.reserve(connections_.size());
  for (const auto& [pointer, weak] : connections_)
    if (auto connection = weak.lock())
      alive.push_back(std::move(connection));
  for (const auto& connection : alive)
    f(*connection);
}

void edge_loop::arm() {
  ticking_ = true;
  ticker_.expires_after(limits::edge_tick);
  ticker_.async_wait([this](error_code ec) {
    ticking_ = false;
    if (ec)
      return;
    const steady_time now = std::chrono::steady_clock::now();
    for_each([now](net_connection& connection) { connection.tick(now); });
    if (!connections_.empty() && !ticking_)
      arm();
  });
}

void edge_loop::drain_all() {
  for_each([](net_connection& connection) { connection.drain(); });
}

void edge_loop::cancel_all() {
  for_each([](net_connection& connection) { connection.cancel(); });
}

void edge_loop::abort_all() {
  ticker_.cancel();
  for_each([](net_connection& connection) { connection.abort(); });
}

} // namespace troupe
