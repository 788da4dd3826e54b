// The kinds of actors that the company has, for supervision, metrics and fault injection.
#pragma once
#include <cstddef>
#include <string_view>

namespace troupe {

enum class actor_kind { batcher, kv_shard, compute_stream, transfer_stream, worker, metrics, edge_bridge, session };
inline constexpr std::size_t actor_kinds = 8;

constexpr std::string_view name_of(actor_kind kind) noexcept {
  switch (kind) {
  case actor_kind::batcher: return "batcher";
  case actor_kind::kv_shard: return "kv_shard";
  case actor_kind::compute_stream: return "compute_stream";
  case actor_kind::transfer_stream: return "transfer_stream";
  case actor_kind::worker: return "worker";
  case actor_kind::metrics: return "metrics";
  case actor_kind::edge_bridge: return "edge_bridge";
  case actor_kind::session: return "session";
  }
  return "?";
}

} // namespace troupe
