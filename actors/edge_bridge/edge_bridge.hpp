// Owns: the border between io/ and the actors: which session serves which request.
// Accepts: open_session, cancel_generation, adopt_session, session_closed, peers_changed.
// Tells: its sessions (cancel_generation).
// Always true: tokens never pass through here; sessions push into their sinks.
// Limits: in_flight's limit, which the port holds before a request comes here.
// If it fails: running sessions go on; its successor is told of them. Requests in its mailbox end with unavailable.
#pragma once
#include <unordered_map>

#include "actors/company.hpp"
#include "actors/support/runtime_context.hpp"

namespace troupe {

struct edge_bridge_state {
  const char* name = "edge_bridge";
  context_ptr context;
  company_ptr peers;
  std::unordered_map<std::uint64_t, session_actor> sessions; // by request number
};

edge_bridge_actor::behavior_type edge_bridge(edge_bridge_actor::stateful_pointer<edge_bridge_state> self, context_ptr context);

} // namespace troupe
