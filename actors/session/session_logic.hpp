// One turn of a conversation, from its prompt to its end: what its session decides.
//
// Owns: the turn's tokens (prompt, less what the context has no room for, and answer so far), sampling and answer_stream. Promises: the ticket gets one started before
// the first delta, deltas in order, and one end; each token is shown once, however often the turn is submitted again;
// resubmission() continues with the next token. A token that comes out of order fails a check.
// Limits: tokens by the context. One thread, no locks; knows no actor.
#pragma once
#include <memory>
#include <optional>

#include "actors/batcher/batch_request.hpp"
#include "actors/edge_bridge/request_ticket.hpp"
#include "actors/session/context_choice.hpp"
#include "actors/support/runtime_context.hpp"
#include "actors/worker/prepared_prompt.hpp"

namespace troupe {

struct session_parts {
  context_ptr context;
  ticket_ptr ticket;
  std::shared_ptr<const generation_request> request;
};

using batch_request_ptr = std::shared_ptr<const batch_request>;

// What the pages of a tenant's prompts are told from others' by; `secret` is the process's.
std::uint64_t salt_of(std::string_view tenant, std::uint64_t secret);

class session_logic {
public:
  explicit session_logic(session_parts parts);

  // The prompt is ready: what to submit, or nothing where that ended the turn.
  batch_request_ptr prepared(const prepared_prompt& prompt);
  // The batcher died: what to submit to the new one, or nothing where nothing was submitted.
  batch_request_ptr resubmission();

  void generated(const tokens_generated& news);
  void finished(const request_finished& news);
  void failed(const request_failed& news);
  void cancel();
  void fail(error fault);

  bool ended() const noexcept { return state_ == state::ended; }
  bool waits_for_prompt() const noexcept { return state_ == state::preparing; }
  bool cancel_requested() const noexcept { return parts_.ticket->cancel_requested(); }
  // The run that the batcher still works on although the turn has ended; told once.
  std::optional<request_id> take_abandoned() { return std::exchange(abandoned_, std::nullopt); }
  std::uint64_t number() const noexcept { return parts_.ticket->number(); }
  const std::shared_ptr<const generation_request>& request() const noexcept { return parts_.request; }
  std::shared_ptr<const std::atomic<bool>> unwanted() const noexcept { return parts_.ticket->unwanted(); }
  int tokens_generated_so_far() const noexcept { return static_cast<int>(tokens_.size()) - prompt_length_; }

  void check_invariants() const;

private:
  enum class state { preparing, submitted, ended };

  bool current(request_id id) const noexcept { return state_ == state::submitted && id == id_; }
  batch_request_ptr submission();
  void begin(int cached_tokens);
  void flush(std::vector<generation_event>& events);
  void count_usage();
  void end_with(finish_reason reason);
  void note_time(std::size_t tokens);
  void note_dropped(int tokens);
  int context_tokens() const noexcept;

  session_parts parts_;
  state state_ = state::preparing;
  request_id id_;
  std::vector<token_id> tokens_; // prompt, then answer; an end token is not kept
  int prompt_length_ = 0;
  context_choice fit_;
  int hidden_tokens_ = 0; // by the window, so far
  bool outgrown_ = false;
  int counted_tokens_ = 0; // of the answer, an end token included
  bool started_ = false;
  int cached_tokens_ = 0;
  std::optional<steady_time> last_token_at_;
  std::shared_ptr<const sampling_params> sampling_;
  std::optional<answer_stream> answer_;
  std::optional<request_id> abandoned_;
};

} // namespace troupe
