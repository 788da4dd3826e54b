// Who is who: the living members of the company at one moment. Immutable; the supervisor hands out a new one at each change.
//
// Always true: versions grow; a member's incarnation grows with each restart; a handle is empty while its member is dead.
#pragma once
#include <vector>

#include "actors/interfaces.hpp"

namespace troupe {

template <class Handle>
struct member {
  Handle handle;
  std::uint32_t incarnation = 0; // 0: never started
  bool alive() const noexcept { return static_cast<bool>(handle); }
};

struct company {
  std::uint64_t version = 0;
  supervisor_actor supervisor;
  member<metrics_actor> metrics;
  std::vector<member<kv_shard_actor>> shards;
  member<compute_stream_actor> compute;
  member<transfer_stream_actor> transfer; // never started where there are no tiers
  std::vector<member<worker_actor>> workers;
  member<batcher_actor> batcher;
  member<edge_bridge_actor> bridge;
};

// From the supervisor to an edge_bridge that did not open the session itself.
struct adopt_session {
  std::uint64_t number = 0;
  session_actor session;
};

} // namespace troupe
