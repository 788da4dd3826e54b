// One thread of the edge: an event loop and the connections that live on it.
//
// Owns the Asio context and a list of its connections. Promises: everything about a connection happens on its loop's thread,
// so connections need no locks; deadlines are checked by one timer for all, which runs only while there are connections.
// Thread: its own; post() from any.
#pragma once
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <unordered_map>

#include "base/clock.hpp"
#include "io/edge_core.hpp"
#include "io/http/router.hpp"

namespace troupe {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;
using error_code = boost::system::error_code;

class net_connection {
public:
  virtual ~net_connection() = default;
  virtual void tick(steady_time now) = 0; // deadlines
  virtual void drain() = 0;               // end as soon as what runs has ended
  virtual void cancel() = 0;              // what runs; its end is answered still
  virtual void abort() = 0;               // cancel what runs and end now
};

class edge_loop {
public:
  explicit edge_loop(edge_core& shared) : core(shared), routes(shared), ticker_(context) {}

  edge_core& core;
  const router routes;

private:
  // Before the context: what the context's destructor frees takes itself off this list.
  std::unordered_map<net_connection*, std::weak_ptr<net_connection>> connections_;

public:
  asio::io_context context{1};
  std::array<char, 64 * 1024> scratch{}; // read into, then copied out of, within one handler

  void add(const std::shared_ptr<net_connection>& connection);
  void remove(net_connection* connection);
  void drain_all();
  void cancel_all();
  void abort_all();

private:
  template <class F>
  void for_each(F f);
  void arm();

  asio::steady_timer ticker_;
  bool ticking_ = false;
};

} // namespace troupe
