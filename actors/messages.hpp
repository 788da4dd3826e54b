// Every message between actors. Commands are verb-noun, facts are past; all are values or shared_ptr<const T>.
//
// message            from                 to                      answer              most outstanding
// open_session       port                 edge_bridge             none                in_flight's limit
// cancel_generation  port, edge_bridge    edge_bridge, session    none                one a call of cancel
// session_opened     session              supervisor              peers_changed       one a session; answered where it is stale
// adopt_session      supervisor           edge_bridge             none                one a session and bridge
// session_closed     supervisor           edge_bridge             none                one a session
// session_lost       supervisor           batcher                 none                one a session
// end_session        supervisor           session                 none                one a session
// prepare_prompt     session              worker                  prompt_prepared     one a session
// submit_request     session              batcher                 tokens_generated*,  one a session
//                                                                 then request_finished or request_failed
// cancel_request     session              batcher                 none                one a session
// take_shard         batcher              kv_shard                shard_taken         one a shard and incarnation
// reserve_pages      batcher              kv_shard                page_answer         reservations_outstanding_max
// grow_pages         batcher              kv_shard                page_answer         one a lease
// publish_pages      batcher              kv_shard                none                one a lease and step
// release_pages      batcher              kv_shard                page_answer         one a lease
// run_step           batcher              compute_stream          step_ended          one
// await_steps        kv_shard             compute_stream          steps_awaited       one a shard and take_shard
// move_pages         kv_shard             transfer_stream         pages_moved         as memory/page_moves.hpp says
// settle_moves       kv_shard             transfer_stream         moves_settled       one a shard and transfer stream
// expect_prompt      runtime              kv_shard                none                those beyond prefetches_max are dropped
// pages_changed      kv_shard             metrics                 none                one a message that kv_shard handles
// batch_changed      batcher              metrics                 none                one a message that batcher handles
// actor_died         supervisor           metrics                 none                one a death
// peers_changed      supervisor           all but supervisor      none                two a death
// kill_actor         runtime              supervisor              none                one a call; fault injection only
// stop_company       runtime              supervisor              its own end         one
// restart_due        supervisor           supervisor              none                one a child, delayed
//
// Answers are sent as messages of their own, not as CAF responses to requests: no timer runs for them. That none waits for ever
// follows from supervision: whoever waits for a dead actor hears of its death by peers_changed and asks its successor.
// A message to an actor that died is dropped.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <variant>

#include "actors/actor_kind.hpp"
#include "actors/batcher/batch_request.hpp"
#include "actors/edge_bridge/request_ticket.hpp"
#include "actors/worker/prepared_prompt.hpp"
#include "memory/page_messages.hpp"
#include "memory/page_moves.hpp"

namespace troupe {

struct company;       // actors/company.hpp
struct adopt_session; // actors/company.hpp
using company_ptr = std::shared_ptr<const company>;
using generation_request_ptr = std::shared_ptr<const generation_request>;

struct open_session {
  ticket_ptr ticket;
  generation_request_ptr request;
};

struct cancel_generation {
  std::uint64_t number = 0;
};

// The sender is the session.
struct session_opened {
  std::uint64_t number = 0;
  std::uint64_t company_version = 0; // that the session knows
};

struct session_closed {
  std::uint64_t number = 0;
};

struct session_lost {
  std::uint64_t number = 0;
};

struct end_session {
  error fault;
};

struct prepare_prompt {
  std::uint64_t number = 0;
  generation_request_ptr request;
  std::shared_ptr<const std::atomic<bool>> unwanted; // true once the request was cancelled or has ended
};

struct prompt_prepared {
  std::uint64_t number = 0;
  std::shared_ptr<const prepared_prompt> prompt;
};

// The sender is the session that gets the tokens.
struct submit_request {
  std::shared_ptr<const batch_request> request;
};

struct cancel_request {
  request_id id;
};

// All leases are void: their batcher is gone, or there never was one.
struct take_shard {
  std::uint32_t shard = 0;
  std::uint32_t incarnation = 0;
};

struct shard_taken {
  std::uint32_t shard = 0;
  std::uint32_t incarnation = 0;
  shard_report report;
};

struct page_answer {
  std::variant<pages_reserved, pages_grown, pages_refused, pages_released> what;
};

struct step_ended {
  std::uint64_t number = 0;
  std::shared_ptr<const step_result> done; // or
  error fault;
};

// Answered by steps_awaited when every step that the compute stream was given before has ended.
struct await_steps {
  std::uint32_t shard = 0;
  std::uint64_t number = 0;
};

struct steps_awaited {
  std::uint32_t shard = 0;
  std::uint64_t number = 0;
};

// A prompt that begins so is likely to come: what of it lies below the device may come up.
struct expect_prompt {
  std::uint64_t salt = 0;
  std::shared_ptr<const std::vector<token_id>> tokens;
};

struct pages_changed {
  std::uint32_t shard = 0;
  std::uint32_t free = 0;
  std::uint32_t used = 0;
  std::uint32_t cached = 0;
  std::uint32_t pinned = 0; // of used and cached
  std::uint32_t states = 0; // kept states of prompts
  by_level<std::uint32_t> below{}; // copies in the tiers
  friend bool operator==(const pages_changed&, const pages_changed&) = default;
};

struct batch_changed {
  std::uint32_t running = 0;
  std::uint32_t waiting = 0;
};

struct actor_died {
  actor_kind kind = actor_kind::session;
};

struct peers_changed {
  company_ptr peers;
};

struct kill_actor {
  actor_kind kind = actor_kind::session;
  std::uint64_t index = 0; // a session's is its request's number
};

struct stop_company {
  error fault; // what open sessions end with
};

struct restart_due {
  actor_kind kind = actor_kind::batcher;
  std::uint32_t index = 0;
  std::uint32_t incarnation = 0; // that died
};

} // namespace troupe
