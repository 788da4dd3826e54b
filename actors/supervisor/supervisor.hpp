// Owns: the tree: every other actor's life, its restarts, and the company that all are told of.
// Accepts: session_opened, kill_actor, stop_company; restart_due from itself.
// Tells: everybody (peers_changed), the edge_bridge (adopt_session, session_closed), the batcher (session_lost), sessions
//   (end_session), metrics (actor_died); threads outside through company_front.
// Always true: a member starts only after the death notice of its predecessor; nobody hears of a company older than the one
//   that it knows; once failing or stopping, nothing starts.
// Limits: limits::restarts_max deaths of one member within limits::restart_window, then failing: sessions end, work is refused.
// If it fails: the health is failing and open tickets end with internal; the process lives on to tell.
#pragma once
#include <unordered_map>

#include "actors/batcher/batch_schedule.hpp"
#include "actors/company.hpp"
#include "actors/compute_stream/backend_slot.hpp"
#include "actors/supervisor/company_front.hpp"
#include "actors/supervisor/restart_policy.hpp"
#include "actors/support/runtime_context.hpp"
#include "memory/tier_store.hpp"
#include "memory/tiered_shard.hpp"

namespace troupe {

struct company_parts {
  context_ptr context;
  std::shared_ptr<company_front> front;
  std::shared_ptr<backend_slot> slot;
  std::shared_ptr<tier_store> store; // null: no tiers
  std::vector<tiered_shard_config> shards;
  batch_schedule_config schedule;
  std::uint32_t workers = 1;
  bool threads = true; // compute stream, transfer stream and workers get threads of their own; off in deterministic tests
};

struct supervisor_state {
  struct post {
    actor_kind kind = actor_kind::session;
    std::uint32_t index = 0;
  };
  struct watched_session {
    session_actor session;
    bool told_to_end = false;
  };

  const char* name = "supervisor";
  company_parts parts;
  company now;
  restart_policy policy;
  bool stopping = false;
  error ending; // what sessions end with, once stopping or failing
  std::unordered_map<caf::actor_addr, post> members;
  std::unordered_map<caf::actor_addr, std::uint64_t> numbers;
  std::unordered_map<std::uint64_t, watched_session> sessions;
};

using supervisor_own = supervisor_actor::extend<caf::reacts_to<restart_due>>;

supervisor_own::behavior_type supervisor(supervisor_own::stateful_pointer<supervisor_state> self, company_parts parts);

} // namespace troupe
