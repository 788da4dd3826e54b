// The edge server: one port that speaks HTTP/1.1 with Server-Sent Events and WebSocket.
//
// Owns the listening socket, its threads and every connection. Promises: a client that goes away has its requests cancelled
// at once; no client can make it buffer without bound or keep a thread; nothing here waits for the runtime. Limits: those of
// edge_options and config/limits.hpp. start, stop and the destructor belong to one thread; the rest is safe from any.
#pragma once
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "base/record_store.hpp"
#include "base/result.hpp"
#include "config/limits.hpp"
#include "config/memory_plan.hpp"
#include "io/edge.hpp"

namespace troupe {

struct edge_options {
  std::string host = "127.0.0.1"; // a name or address; one that is not loopback needs a key
  int port = 8000;                // 0: any free one
  int threads = 1;
  int connections_max = limits::connections_max;
  std::size_t send_queue_bytes_max = limits::send_queue_bytes_max; // waiting for one connection
  std::vector<std::string> allowed_origins;                        // beyond the server's own; "*" is any
  std::vector<std::string> api_keys;                               // empty: none is asked for
  std::string model_alias;                                         // the name clients use; empty: the model's own
  std::shared_ptr<record_store> records;                           // of stored responses; null: they go with the process
  bool echo_route = false;                                         // /__echo, for conformance probes
  std::uint64_t memory_limit = 0;                                  // for /metrics; 0: none
  memory_shares memory;                                            // its connections_max holds beside the one above
};

class edge_server {
public:
  // Binds and starts to serve. `port` must outlive the server. Fails with invalid_argument or io_failed.
  static result<std::unique_ptr<edge_server>> start(edge_options options, edge_port& port, log_sink log);
  virtual ~edge_server() = default; // stops at once

  virtual int port() const noexcept = 0;
  virtual int connections() const noexcept = 0;
  // New connections are refused, idle ones end, answers in progress go on. Idempotent.
  virtual void stop_accepting() = 0;
  // stop_accepting, then waits until running answers ended or the deadline passed, cancels what is left, ends the threads.
  virtual void stop(std::chrono::milliseconds deadline) = 0;

protected:
  edge_server() = default;
};

} // namespace troupe
