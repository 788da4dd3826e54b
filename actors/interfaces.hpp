// The typed handles of all actors, with a sentence a message. Everything that is CAF's syntax for interfaces is here, in
// messages.hpp and in actors/support/.
#pragma once
#include <caf/all.hpp>

#include "actors/messages.hpp"
#include "actors/support/message_types.hpp"

namespace troupe {

// clang-format off

using metrics_actor = caf::typed_actor<
  caf::reacts_to<pages_changed>,   // A shard's pages moved between free, used and cached.
  caf::reacts_to<batch_changed>,   // The batcher runs or holds another number of sequences.
  caf::reacts_to<actor_died>>;     // One more death of this kind.

using worker_actor = caf::typed_actor<
  caf::replies_to<prepare_prompt>::with<prompt_prepared>>; // Renders and tokenises; a bad prompt is an answer, too.

using compute_stream_actor = caf::typed_actor<
  caf::replies_to<run_step>::with<step_ended>,         // Runs one step; answers with its results or with what went wrong.
  caf::replies_to<await_steps>::with<steps_awaited>>;  // Says when the steps before it are over.

using transfer_stream_actor = caf::typed_actor<
  caf::replies_to<move_pages>::with<pages_moved>,      // Copies pages down or up; answers with what became of each.
  caf::replies_to<settle_moves>::with<moves_settled>>; // Says when the moves before it are over.

using kv_shard_actor = caf::typed_actor<
  caf::reacts_to<take_shard>,     // Frees every lease; the asking batcher is the owner from now on, and hears shard_taken.
  caf::reacts_to<reserve_pages>,  // Grants pages for a sequence, shared ones first, or refuses: page_answer, once it is known.
  caf::reacts_to<grow_pages>,     // Grants more pages to a lease, or refuses: page_answer, likewise.
  caf::reacts_to<publish_pages>,  // Lets others find what a finished step has filled.
  caf::reacts_to<release_pages>,  // Publishes and frees a lease: page_answer.
  caf::reacts_to<expect_prompt>,  // What of it lies below may come up.
  caf::reacts_to<pages_moved>,    // What became of a move.
  caf::reacts_to<moves_settled>,  // No page of ours is being moved for a former shard.
  caf::reacts_to<steps_awaited>,  // No step of a former batcher runs.
  caf::reacts_to<peers_changed>>; // Another metrics actor, perhaps, or another stream.

using batcher_actor = caf::typed_actor<
  caf::reacts_to<submit_request>,  // A session's sequence wants to run; its sender hears of it until its end.
  caf::reacts_to<cancel_request>,  // A run is wanted no more.
  caf::reacts_to<session_lost>,    // Nobody listens to this number any more.
  caf::reacts_to<shard_taken>,     // A shard is empty and ours.
  caf::reacts_to<page_answer>,     // What became of a reservation, growth or release.
  caf::reacts_to<step_ended>,      // The step in flight is over.
  caf::reacts_to<peers_changed>>;  // Shards or the compute stream died or are back.

using session_actor = caf::typed_actor<
  caf::reacts_to<prompt_prepared>,   // The prompt's tokens, or why there are none.
  caf::reacts_to<tokens_generated>,  // The next tokens.
  caf::reacts_to<request_finished>,  // No more will come.
  caf::reacts_to<request_failed>,    // No more will come, and why.
  caf::reacts_to<cancel_generation>, // The client wants no more.
  caf::reacts_to<end_session>,       // The company can't go on.
  caf::reacts_to<peers_changed>>;    // The worker or batcher that it waits for may have died.

using edge_bridge_actor = caf::typed_actor<
  caf::reacts_to<open_session>,      // A request passed the gate.
  caf::reacts_to<cancel_generation>, // To be passed to its session.
  caf::reacts_to<adopt_session>,     // A session that another bridge opened.
  caf::reacts_to<session_closed>,    // The session has ended.
  caf::reacts_to<peers_changed>>;    // What new sessions are told.

using supervisor_actor = caf::typed_actor<
  caf::reacts_to<session_opened>,    // A session lives; it is watched and told of changes from now on.
  caf::reacts_to<kill_actor>,        // Fault injection: that actor dies.
  caf::reacts_to<stop_company>>;     // Sessions end, then everything ends, then the supervisor.

// clang-format on

} // namespace troupe
