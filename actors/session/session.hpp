// Owns: one turn of a conversation through session_logic: its tokens, its sampling, the stream to its client.
// Accepts: prompt_prepared, tokens_generated, request_finished, request_failed, cancel_generation, end_session, peers_changed.
// Tells: a worker (prepare_prompt), the batcher (submit_request, cancel_request), the supervisor (session_opened); its client's
//   sink directly.
// Always true: it waits for exactly one of worker and batcher, and knows which incarnation it asked.
// Limits: limits::resubmissions_max runs of one turn; unavailable beyond.
// If it fails: its ticket ends the client's stream with unavailable; the supervisor tells the batcher to drop the sequence.
#pragma once
#include <optional>

#include "actors/company.hpp"
#include "actors/session/session_logic.hpp"

namespace troupe {

struct session_state {
  const char* name = "session";
  std::optional<session_logic> logic;
  company_ptr peers;
  bool check_invariants = false;
  std::uint32_t asked_worker = 0;  // incarnation that has our question; 0: none
  std::uint32_t asked_batcher = 0; // incarnation that has our sequence; 0: none
};

session_actor::behavior_type session(session_actor::stateful_pointer<session_state> self, session_parts parts,
                                     company_ptr peers);

} // namespace troupe
