// What all connections of one server share.
//
// Owns the options, the rules, the stored responses, the counters and the source of ids; refers to the runtime's port and
// the log. Outlives every connection. Any thread.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>

#include "base/log.hpp"
#include "config/limits.hpp"
#include "io/byte_budget.hpp"
#include "io/edge.hpp"
#include "io/http/access.hpp"
#include "io/response_store.hpp"
#include "io/server.hpp"
#include "io/wire/answer_identity.hpp"

namespace troupe {

struct edge_counters {
  std::atomic<std::int64_t> connections{0}; // open now
  std::atomic<std::int64_t> websockets{0};  // of them
  std::atomic<std::uint64_t> connections_total{0};
  std::atomic<std::uint64_t> connections_refused_total{0};
  std::atomic<std::uint64_t> requests_total{0};
  std::atomic<std::uint64_t> refusals_total{0};    // answered with a status of 400 or more
  std::atomic<std::uint64_t> disconnects_total{0}; // clients that left an answer unfinished
  std::atomic<std::uint64_t> overflows_total{0};   // clients that read too slowly
};

class edge_core {
public:
  // `loopback`: only this machine reaches the server, so that names of other machines in Host are an attack.
  edge_core(edge_options options, bool loopback, edge_port& port, log_sink log);

  const edge_options options;
  edge_port& port;
  const log_sink log;
  const access_rules access;
  response_store responses;
  byte_budget input;   // requests
  byte_budget answers; // that wait for their clients
  byte_budget socket_responses; // that sockets keep for themselves
  edge_counters counters;
  std::atomic<bool> draining{false};

  // Tells who waits for the last connection to end.
  std::mutex empty_mutex;
  std::condition_variable empty;
  void connection_ended();

  // "chatcmpl-" and 24 hexadecimal digits that nobody can guess.
  std::string make_id(std::string_view prefix);
  std::string model_name() const;
  // Empty, the alias and the model's own name are known.
  bool knows_model(std::string_view name) const;
  answer_identity identify(std::string_view id_prefix);
  // The runtime's metrics and the edge's.
  std::string metrics_text() const;

private:
  std::uint64_t id_key_, id_mask_;
  std::atomic<std::uint64_t> id_counter_{0};
};

wire_fault unknown_model(std::string_view name);

// The memory that a request's texts and lists hold.
std::size_t bytes_of(const generation_request& request) noexcept;

} // namespace troupe
