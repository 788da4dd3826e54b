// Owns which requests wait, which run and where, and what the next step computes: the batcher's decisions as a state machine
// that knows no actor and reads no clock. Each input returns what is to be done, in order.
//
// Promises:
// - Every submitted request gets exactly one request_finished or request_failed; its tokens come in order, without gap.
// - At most one step is in flight. Pages are released, and those newly granted first written, only between steps: what a step
//   in flight may write belongs to its sequences until its end. So a cancelled request's pages return within two steps.
// - A request's tokens do not depend on what else is submitted, refused, pre-empted, cancelled or lost.
// - Nothing starves: rank grows with waiting, the first in rank is never overtaken for memory, decodes rotate when they
//   exceed a step, and the oldest of the highest priority is never pre-empted for another.
// - A late answer (a lease that is no longer the sequence's) changes nothing, and what it granted is released.
// Limits: waiting_max submissions that were never admitted (queue_full; those of a generation above 0 were accepted before
// and may fill running_max more), running_max sequences with a lease, step_tokens tokens a step,
// limits::reservations_outstanding_max reservations under way, one grow_pages a sequence.
// One thread, no locks; time is passed in.
//
// Policy. Rank: earlier arrival, higher priority, fewer tokens left come first; a level of priority is worth a minute of
// waiting, 512 tokens a second, at most half a minute in all. A step takes every decode, then slices of prefill by rank.
// A waiting request is admitted when its shard can hold it and still what those running there may soon need (simulated over
// the next admission_lookahead_tokens); where decode runs out of pages all the same, the youngest of the lowest priority is
// pre-empted: its pages are published, so that it usually finds them again. A request goes to the shard that knows its
// beginning (shard_affinity), unless that would give up more of what others come back for than it saves (with tiers it does not). A step that fails
// as a whole is tried again sequence by sequence, so that one bad sequence ends alone.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "actors/batcher/batch_request.hpp"
#include "actors/batcher/batch_sequence.hpp"
#include "actors/batcher/shard_affinity.hpp"
#include "base/clock.hpp"

namespace troupe {

struct batch_schedule_config {
  std::vector<std::uint32_t> shard_pages;  // pages of each shard, 1 at least; all start as not ready
  int running_max = 64;                    // 1 .. limits::running_sequences_max
  int waiting_max = 256;                   // at least 1; the gate may let running_max more in
  int step_tokens = 256;                   // 1 .. limits::step_tokens_max; at most the backend's step_tokens_max
  int first_reservation_tokens = 64;       // room for the answer when admitted
  int admission_lookahead_tokens = 256;    // of each running sequence's growth that admission keeps free
  bool evicted_come_back = false;          // shards have tiers: what one gives up for a request is loaded again, not computed
  bool prompt_states = true;               // states at the ends of prompts are asked for and used
};

struct batch_schedule_stats {
  std::uint32_t waiting = 0;
  std::uint32_t running = 0;      // with a lease or a reservation under way
  std::uint32_t prefilling = 0;   // of those
  std::uint64_t submitted = 0;
  std::uint64_t refused = 0;      // at submission
  std::uint64_t finished = 0;     // cancelled ones included
  std::uint64_t failed = 0;       // after admission to the queue
  std::uint64_t cancelled = 0;
  std::uint64_t steps = 0;
  std::uint64_t failed_steps = 0;
  std::uint64_t prefill_tokens = 0;
  std::uint64_t decode_tokens = 0;
  std::uint64_t prompt_tokens = 0; // of admitted requests
  std::uint64_t cached_tokens = 0; // of those
  std::uint64_t resumed = 0;       // sequences that began with no forward pass
  std::uint64_t spilled = 0;       // admitted away from the shard that knows their beginning, for want of room there
  std::uint64_t evictions = 0;      // of tokens, from sequences at their budget
  std::uint64_t evicted_tokens = 0;
  std::uint64_t reread_tokens = 0;  // that their scores took
  std::uint64_t preemptions = 0;
  std::uint64_t requeued = 0;      // by a shard's loss
  std::uint64_t late_answers = 0;
  double step_seconds = 0;         // inside the backend, summed
};

class batch_schedule {
public:
  // Precondition: the config is within the limits named there.
  explicit batch_schedule(batch_schedule_config config);
  batch_schedule(const batch_schedule&) = delete;
  batch_schedule& operator=(const batch_schedule&) = delete;

  // -- from sessions --
  // Refused (request_failed) with invalid_argument, context_full, no_memory (could never fit), queue_full or shutting_down.
  // A repeated id is ignored; a higher generation of a number cancels the lower one; a lower one is refused (cancelled).
  batch_actions submit(batch_request request, steady_time now);
  batch_actions cancel(request_id id); // unknown ids are ignored; request_finished{cancelled} comes at once

  // -- from shards; `shard` in the answers is the index --
  // The actor talks to the incarnation that the last shard_ready announced; answers of a former one may still be passed in.
  // Every ask must be answered: where a shard does not answer in time, with pages_refused{timeout} or a pages_released without
  // report (serial 0). Where it turns out to be gone, call shard_lost first.
  batch_actions shard_ready(std::uint32_t shard, shard_report report); // empty and able to take reservations
  batch_actions shard_lost(std::uint32_t shard);                       // its leases are void; idempotent
  batch_actions answered(const pages_reserved& answer);
  batch_actions answered(const pages_grown& answer);
  batch_actions answered(const pages_refused& answer);
  batch_actions answered(const pages_released& answer);

  // -- from the compute stream; steps wait for the first compute_ready --
  batch_actions compute_ready();
  batch_actions compute_lost();                     // a step in flight has failed, and is not running any more
  batch_actions step_done(const step_result& done); // any step number but the one in flight is ignored
  batch_actions step_failed(std::uint64_t number, const error& fault);

  // -- shutdown --
  void drain() { draining_ = true; } // refuses new submissions (generation 0); what was accepted is finished
  batch_actions abort_all(const error& fault); // ends every request; pages return as with cancel
  bool idle() const noexcept { return sequences_.empty() && !step_; } // nothing accepted is unfinished, no page is held

  batch_schedule_stats stats() const;
  std::optional<std::uint64_t> step_in_flight() const { return step_ ? std::optional(step_->number) : std::nullopt; }
  std::size_t releases_outstanding() const noexcept;
  void check_invariants() const;

private:
  struct page_ask {
    std::uint32_t pages = 0;
    bool reservation = false; // or growth
  };
  struct shard_view {
    std::uint32_t pages = 0;
    bool ready = false;
    shard_report report;                                  // the newest
    std::uint64_t changes = 0;                            // counts what can make a refused ask succeed
    std::unordered_map<lease_id, page_ask> asks;          // unanswered
    std::unordered_map<lease_id, std::uint32_t> releases; // unanswered, how many
  };

  // batch_schedule.cpp: inputs and ends
  std::optional<error> refusal(const batch_request& request) const;
  batch_sequence* find(request_id id);
  void finish(batch_sequence& s, sequence_end reason, token_id end_token, batch_actions& out);
  void fail_request(batch_sequence& s, error fault, batch_actions& out);
  void end(batch_sequence& s, batch_actions& out);
  void forget(batch_sequence& s);

  // batch_memory.cpp: admission, growth, pre-emption, release
  void admit(batch_actions& out);
  std::optional<std::uint32_t> choose_shard(batch_sequence& s);
  bool may_ask(const batch_sequence& s, std::uint32_t shard) const;
  int first_need(const batch_sequence& s) const;
  std::uint32_t headroom(std::uint32_t shard) const;
  std::int64_t spare_pages(std::uint32_t shard) const;
  std::int64_t free_pages(std::uint32_t shard) const;
  void grow_running(batch_actions& out);
  void make_room(batch_sequence& stuck, batch_actions& out);
  void requeue(batch_sequence& s, batch_actions& out);
  void release(batch_sequence& s, batch_actions& out);
  void send_release(release_pages message, batch_actions& out);
  void publish(batch_sequence& s, prompt_state_ptr state, batch_actions& out);
  int length_max(const batch_sequence& s) const; // prompt and answer
  int computed_max(const batch_sequence& s) const; // of those
  int held_max(const batch_sequence& s) const;   // tokens that its pages can come to hold at a time
  double rank(const batch_sequence& s) const;
  void ask_growth(batch_sequence& s, grow_pages ask, std::uint32_t pages, batch_actions& out);

  // batch_window.cpp: sequences that outgrow their window
  std::optional<error> window_refusal(const batch_request& request) const;
  int pages_max(const batch_request& request) const;            // that a sequence may hold
  int shareable(const batch_sequence& s, int tokens) const;     // of the first `tokens`, those that others may find
  bool has_room(const batch_sequence& s) const;
  std::shared_ptr<const std::vector<token_id>> sought(const batch_sequence& s) const;
  void turn_ring(batch_sequence& s, batch_actions& out);

  // batch_eviction.cpp: sequences that exceed their budget
  std::optional<error> budget_refusal(const batch_request& request) const;
  int room_wanted(const batch_sequence& s) const;
  int reading_rows() const;
  sequence_step reading_of(const batch_sequence& s) const;
  void take_scores(batch_sequence& s, const std::vector<float>& scores);
  kv_compaction evict(batch_sequence& s);

  // batch_answers.cpp: answers, losses and returns of shards
  void note(std::uint32_t shard, const shard_report& report);
  std::optional<page_ask> take_ask(std::uint32_t shard, lease_id lease, const shard_report& report);
  batch_sequence* holder(lease_id lease, std::uint32_t shard);
  bool holds_nothing(std::uint32_t shard) const;

  // batch_steps.cpp: what a step computes, and what follows from its result
  void advance(batch_actions& out);
  void start_step(batch_actions& out);
  bool runnable(const batch_sequence& s) const;
  int add_to_plan(step_plan& plan, batch_sequence& s, int most);
  void take_result(batch_sequence& s, const sequence_step& part, const sequence_result& result, batch_actions& out);
  void take_token(batch_sequence& s, sampled_token token, batch_actions& out);
  void settle(batch_sequence& s, batch_actions& out);
  void fail_step(const error* blame, batch_actions& out);

  batch_schedule_config config_;
  std::vector<shard_view> shards_;
  shard_affinity affinity_;
  std::unordered_map<request_id, std::unique_ptr<batch_sequence>> sequences_; // ended ones, too, until their step's end
  std::unordered_map<std::uint64_t, request_id> current_;                     // number -> the generation that has not ended
  std::unordered_map<lease_id, batch_sequence*> leases_;                      // void and released ones are gone
  std::vector<batch_sequence*> waiting_;                                      // not ended
  std::vector<batch_sequence*> running_;                                      // reserving or running, in order of admission
  std::shared_ptr<const step_plan> step_;                                     // in flight
  bool compute_ready_ = false;
  bool draining_ = false;
  std::uint64_t next_serial_ = 1;
  std::uint64_t next_step_ = 1;
  lease_id next_lease_ = 1;
  std::optional<steady_time> origin_;
  batch_schedule_stats counters_;
};

} // namespace troupe
