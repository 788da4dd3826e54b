// Owns one shard's memory and what of it lies in the tiers below the device: which pages are copied down, which come back,
// when, and which requests wait for that. Answers come as actions, at once or when a transfer has ended.
//
// Promises: every reserve_pages and grow_pages gets exactly one answer, unless taken() or a release of its lease comes first
// (the release answers both); nobody waits for a transfer stream that is not there; a page that a transfer moves is held until
// its answer, or until the transfer stream is gone; a page comes back only behind and with exactly its tokens. With no tiers
// each answer comes at once. Limits: transfers under way as in limits::tier_*_pages_max; limits::tier_waits_max loads a
// reservation waits for. One thread, no locks; time is passed in.
//
// Down: a page is copied while it is still in the pool, soon after it was published, the pages above it first; from then on it
// is clean, and its eviction costs nothing. Up: where more of a prompt lies below than in the device, the pages are loaded into
// the prefix tree first, and the reservation is made when they are there: so steps go on meanwhile, and what can't be loaded is
// computed. A prefetch is the same with nobody waiting, into pages that are free, or clean
// and not of a conversation that is expected earlier.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <variant>
#include <vector>

#include "memory/kv_shard_memory.hpp"
#include "memory/page_moves.hpp"
#include "memory/prefetch_predictor.hpp"
#include "memory/tier_index.hpp"
#include "memory/tier_journal.hpp"

namespace troupe {

struct tier_config {
  tier_index_config index; // no slots: no tiers
  int prefetch_ahead = 0;  // conversations; 0: none is predicted
  std::shared_ptr<tier_journal> journal = nullptr; // null: what lies on disk ends with the process
};

struct tiered_shard_config {
  kv_shard_config pages;
  tier_config tiers = {};
};

struct tier_stats {
  tier_index_stats index;
  std::uint64_t lookups = 0;          // reservations whose beginning was in the device or below
  std::uint64_t misses = 0;           // of those, the ones of which the device held less than lay below
  std::uint64_t pages_down = 0;       // copied
  by_level<std::uint64_t> pages_up{}; // loaded, from where
  std::uint64_t prefetched = 0;       // of those, with nobody waiting
  std::uint64_t prefetch_used = 0;    // of those, found by a reservation
  std::uint64_t prefetch_unused = 0;  // of those, given up before
  std::uint64_t damaged = 0;          // copies that held something else, or were torn
  std::uint64_t failed = 0;           // moves that the device or the operating system refused
  std::uint64_t clean_evicted = 0;    // pages that left the device and lie below
  std::uint64_t lost = 0;             // pages that left it and do not
};

using shard_action = std::variant<pages_reserved, pages_grown, pages_refused, pages_released, move_pages>;
using shard_actions = std::vector<shard_action>;

class tiered_shard {
public:
  explicit tiered_shard(tiered_shard_config config);
  tiered_shard(const tiered_shard&) = delete;
  tiered_shard& operator=(const tiered_shard&) = delete;

  void pass(steady_time now); // told before anything else is asked

  // -- from the batcher --
  shard_actions reserve(const reserve_pages& ask);
  shard_actions grow(const grow_pages& ask);
  shard_actions publish(const publish_pages& tell);
  shard_actions release(const release_pages& tell);
  // Another batcher owns the shard: leases and questions are void. A step of the former one may still run: no page is moved up
  // until steps_passed().
  void taken();
  // Whoever asks for these tokens may do so soon.
  shard_actions hint(std::uint64_t salt, std::span<const token_id> tokens);

  // -- from the transfer stream and about it --
  bool has_tiers() const noexcept { return tiers_; }
  bool awaits_steps() const noexcept { return tiers_ && !steps_passed_; }
  shard_actions steps_passed();                 // every step that was asked for before taken() has ended
  shard_actions transfer_ready();               // there is one, and no move of a former shard is under way
  shard_actions transfer_lost();                // it is gone, and so is what was under way; idempotent
  shard_actions moved(const pages_moved& news); // late ones are ignored

  shard_report report() { return memory_.report(); }
  kv_shard_stats stats() const { return memory_.stats(); }
  tier_stats tiers() const;
  int waiting() const noexcept { return static_cast<int>(parked_.size()); }              // asks
  bool quiet() const noexcept { return parked_.empty() && loads_.empty() && !writing_; } // nothing is under way
  const kv_shard_config& config() const noexcept { return memory_.config(); }
  kv_shard_memory& memory() noexcept { return memory_; }
  tier_index& index() noexcept { return index_; }
  void check_invariants() const;

private:
  using load_number = std::uint64_t; // 0: none
  struct parked_ask {
    std::variant<reserve_pages, grow_pages> what;
    int waits = 0;        // loads so far
    load_number load = 0; // that it waits for; 0: for room that a transfer holds, or for steps_passed()
  };
  struct page_load {
    bool prefetch = false;
    kv_shard_memory::hold_id hold = 0;
    prefix_position at;
    std::vector<tier_entry_id> entries; // behind `at`, in order; the last may be a page that agrees in part
    std::size_t next = 0;               // not asked for yet
    struct move {
      tier_entry_id entry = 0;
      tier_index::reading reading;
      page_handle page;
      std::vector<token_id> tokens;
    };
    std::vector<move> under_way;
    std::uint64_t number = 0; // of that message
    int waiting = 0;          // asks
  };
  struct page_write {
    struct page {
      tier_entry_id entry = 0;
      page_handle page;
      kv_shard_memory::hold_id hold = 0;
    };
    std::uint64_t number = 0;
    std::vector<page> pages;
  };
  struct below { // what lies below of some tokens, and not in the device
    prefix_position at;
    std::vector<tier_entry_id> entries;
    bool known = false; // any of the tokens lies here or there
  };

  // tiered_shard.cpp: questions and who waits
  below look_below(std::uint64_t salt, std::span<const token_id> tokens);
  void try_reserve(const reserve_pages& ask, int waits, shard_actions& out);
  bool wait_for_load(const reserve_pages& ask, int waits, const below& found);
  void try_grow(const grow_pages& ask, shard_actions& out);
  void park(std::variant<reserve_pages, grow_pages> ask, int waits, load_number load);
  void retry(load_number load, shard_actions& out);
  bool room_is_awaited() const;
  void note_found(const pages_reserved& answer);
  void begin_turn(const reserve_pages& ask);
  void end_turn(const release_pages& tell);

  // tiered_shard_moves.cpp: transfers
  load_number start_load(below found, bool prefetch);
  void pump(shard_actions& out);
  bool go_on(load_number number, shard_actions& out);
  void take_loaded(page_load& load, const pages_moved& news);
  void end_load(load_number number, shard_actions& out);
  void start_prefetch();
  void promise(const prefix_position& at, std::span<const token_id> rest);
  void start_writes(shard_actions& out);
  bool add_write(page_handle page, page_write& batch, move_pages& message);
  void end_writes(const pages_moved& news);
  bool clean(page_id page) const;
  std::size_t slot_of(page_id page) const noexcept { return page - config().first; }
  void wake_tails();

  const tier_config config_;
  kv_shard_memory memory_;
  tier_index index_;
  prefetch_predictor predictor_;
  bool tiers_;
  bool transfer_ready_ = false;
  bool steps_passed_ = false;
  std::map<lease_id, parked_ask> parked_; // the oldest first
  std::map<load_number, page_load> loads_;
  std::unordered_map<tier_entry_id, load_number> loading_;
  std::optional<page_write> writing_;
  std::vector<tier_entry_id> entry_of_; // by page: what it is a copy of; may have gone
  std::vector<bool> queued_;            // by page: stands in dirty_ or tails_
  std::vector<bool> prefetched_;        // by page: and not found yet
  std::vector<std::uint64_t> promised_; // by page: the prediction that it is kept for, from what is predicted later
  std::uint64_t prediction_ = 1;
  std::deque<page_handle> dirty_;  // to be copied down, as they were published
  std::vector<page_handle> tails_; // likewise, once their holder is done with them
  std::unordered_map<lease_id, conversation_number> turns_;
  std::deque<conversation_number> wanted_; // to be prefetched, the nearest first
  load_number next_load_ = 1;
  std::uint64_t next_message_ = 1;
  tier_stats counters_;
};

} // namespace troupe
