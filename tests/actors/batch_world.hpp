// A world around batch_schedule: shards of real memory behind queues, a backend that keeps what it was told to write into
// pages, and sessions that hold every promise against what a sequence alone would have given. Nothing moves by itself: a test
// delivers each message and ends each step.
//
// The backend's "keys and values" of a position are a hash of all tokens up to it, so a page that is read stale, written by
// two, or reused too early gives other tokens than the oracle.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "actors/batcher/batch_schedule.hpp"
#include "memory/tiered_shard.hpp"

namespace troupe::test {

inline constexpr token_id vocabulary = 60;

struct session_record {
  batch_request request;        // as submitted last
  std::vector<token_id> tokens; // prompt and all that came
  std::optional<request_finished> finished;
  std::optional<request_failed> failed;
  std::optional<tokens_generated> first;
  std::uint64_t submitted_at_step = 0;
  std::uint64_t first_token_at_step = 0;
  std::optional<std::uint64_t> cancelled_at_step; // that had been started by then
  bool may_fail = false;                          // a fault was put in
  bool ended() const { return finished || failed; }
  int generated() const { return static_cast<int>(tokens.size()) - request.prompt_length; }
};

// Eight may run, a step takes 32 tokens, reservations look one page ahead.
batch_schedule_config small_config(std::vector<std::uint32_t> pages = {64});

class batch_world {
public:
  // `tiers`: slots of each shard.
  explicit batch_world(batch_schedule_config config, prefix_policy prefix = {.prompt_states = 8}, tier_config tiers = {});

  // A request with sensible values; change what the case is about, then submit.
  batch_request request(std::vector<token_id> prompt, int max_new_tokens);
  session_record& submit(const batch_request& r);
  void cancel(request_id id);

  bool deliver_to_shard(std::uint32_t shard);   // false: nothing was under way
  bool deliver_from_shard(std::uint32_t shard);
  bool deliver_move();                          // of pages; false: none is under way, or there is no transfer stream
  void pump();                                  // all of these, until all is quiet
  bool step_running() const { return !steps_.empty(); }
  const step_plan& plan() const;                // of the step in flight
  bool end_step(const std::set<std::uint64_t>& faulty = {}); // by request number; false: none was running
  bool fail_step();
  void turn() { pump(); end_step(); pump(); }
  void run_until_idle(int steps_max = 100'000);
  std::uint32_t most_pages_until_idle(); // used at a time in the first shard

  void kill_shard(std::uint32_t shard);         // its memory and what was under way to it are gone
  void notice_lost(std::uint32_t shard);        // the schedule hears of it
  void restart_shard(std::uint32_t shard);
  bool alive(std::uint32_t shard) const { return shards_[shard].memory != nullptr; }
  bool known_alive(std::uint32_t shard) const { return shards_[shard].known; }
  void kill_transfer();                         // what is under way is not done
  void restart_transfer();
  bool transfer_alive() const { return transfer_alive_; }
  void kill_compute();
  void restart_compute();
  bool compute_alive() const { return compute_alive_; }
  void restart_batcher();                       // sessions submit again, with higher generations
  void refuse_next(errc code, int times) { refuse_code_ = code; refuse_times_ = times; } // shards answer so

  // What the oracle says that the sequence gives, alone: tokens, reason, end token.
  std::vector<token_id> oracle(const batch_request& r, sequence_end& reason, token_id& end_token) const;

  void check();                                 // invariants everywhere
  void check_all_returned();                    // nothing runs: every page is free or cached
  void pass(double seconds) {
    now_ += std::chrono::duration_cast<steady_time::duration>(std::chrono::duration<double>(seconds));
  }

  batch_schedule& schedule() { return *schedule_; }
  kv_shard_memory& memory(std::uint32_t shard) { return shards_[shard].memory->memory(); }
  const tiered_shard& shard(std::uint32_t shard) const { return *shards_[shard].memory; }
  std::uint32_t shard_count() const { return static_cast<std::uint32_t>(shards_.size()); }
  std::map<std::uint64_t, session_record>& sessions() { return sessions_; }
  session_record& session(std::uint64_t number) { return sessions_.at(number); }
  std::uint64_t steps_started() const { return steps_started_; }
  const std::string& trace() const { return trace_; }
  std::vector<std::uint32_t> shards_asked(std::uint64_t number) const; // reservations, in order
  bool has_lease(std::uint64_t number) const;

private:
  using to_shard = std::variant<reserve_pages, grow_pages, publish_pages, release_pages>;
  using from_shard = std::variant<pages_reserved, pages_grown, pages_refused, pages_released>;
  struct shard_side {
    page_id first = 0;
    std::unique_ptr<tiered_shard> memory;
    std::size_t steps_before = 0; // that were given to the compute stream before it was taken, and have not ended
    bool known = false; // to the schedule as ready
    std::deque<to_shard> inbox;
    std::deque<from_shard> outbox;
  };
  // Which token stands at which position, after evictions.
  struct layout {
    std::vector<int> held;
    int evicted = 0;
    int evictions = 0;
    int token_at(int position) const {
      return position < static_cast<int>(held.size()) ? held[static_cast<std::size_t>(position)] : position + evicted;
    }
  };
  struct running_step {
    std::shared_ptr<const step_plan> plan;
    std::uint64_t batcher = 0; // who asked
    std::map<std::uint64_t, layout> layouts; // of its sequences
  };

  struct page_flight {
    move_pages message;
    std::vector<std::vector<std::uint64_t>> cells; // of the pages when it began
    bool orphan = false;                           // its shard is gone
  };

  void carry_out(batch_actions actions);
  void carry_out(std::uint32_t shard, shard_actions actions);
  pages_moved move(const page_flight& flight);
  void step_is_over();
  void await_steps(std::uint32_t shard);
  void start(const std::shared_ptr<const step_plan>& plan);
  layout follow(const step_plan& plan, const sequence_step& part);
  void begin_writing(const running_step& step);
  void spoil_copies(const step_plan& plan); // a failed step leaves them undefined
  std::vector<std::uint64_t> hashes(const sequence_step& part) const; // after each token of its sequence
  std::uint64_t check_earlier(const running_step& step, const sequence_step& part) const;
  void hear(const tokens_generated& told);
  void end(request_id id, std::optional<request_finished> finished, std::optional<request_failed> failed);
  std::uint64_t& cell(const page_table& pages, int position);
  std::span<std::uint64_t> cells_of(page_id page);
  void note(const std::string& line);

  batch_schedule_config config_;
  prefix_policy prefix_;
  std::unique_ptr<batch_schedule> schedule_;
  std::uint64_t batcher_ = 1;
  std::vector<shard_side> shards_;
  std::vector<std::uint64_t> cells_; // by page and token in it
  std::deque<running_step> steps_;   // the first runs
  bool compute_alive_ = true;
  tier_config tiers_;
  std::deque<page_flight> moves_;
  bool transfer_alive_ = true;
  std::map<std::pair<std::size_t, std::uint32_t>, std::pair<prefix_hash, std::vector<std::uint64_t>>> below_; // by level and slot
  std::map<std::uint64_t, session_record> sessions_;
  std::map<std::uint64_t, layout> layouts_;                                          // by request, as planned last
  std::map<std::pair<std::uint64_t, int>, std::vector<std::int32_t>> evictions_seen_; // by request and how many before
  struct lease_record {
    request_id id;
    std::uint32_t shard = 0;
    bool granted = false; // told to the schedule
  };
  std::map<lease_id, lease_record> leases_; // asked for, not refused, not released
  std::map<std::uint64_t, std::vector<std::uint32_t>> asked_;
  std::uint64_t next_number_ = 1;
  std::uint64_t steps_started_ = 0;
  std::uint64_t last_plan_ = 0;
  errc refuse_code_ = errc::ok;
  int refuse_times_ = 0;
  steady_time now_{};
  std::string trace_;
};

// Equal for equal (kind, length): prompts of one kind share their beginnings.
std::vector<token_id> prompt_of(int kind, int length);

} // namespace troupe::test
