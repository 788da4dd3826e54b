// Owns what a shard knows of its pages below the device: a tree of entries like the prefix tree's (a page of tokens behind the
// pages before it, or a tail), and in which slots of which tier each one's copies lie.
// Promises: an entry is found only for exactly its tokens behind exactly the entries before it, under its salt; an entry's
// ancestors are entries, too; a slot belongs to one entry; a copy that is being written or read (locked) gives its slot up
// only when that has ended. Room comes from the least recently used copy whose entry has another copy or no children.
// Limits: the slots of its tiers, limits::tier_slots_max each. One thread, no locks; time is passed in.
//
// A use counts for the whole path, the root last, so that an entry is older than its ancestors.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "config/limits.hpp"
#include "memory/page_moves.hpp"

namespace troupe {

using tier_entry_id = std::uint64_t; // 0: none; never used twice

struct tier_index_config {
  by_level<std::uint32_t> first{}; // the shard's slots are [first, first + slots) of each tier
  by_level<std::uint32_t> slots{};
  steady_time::duration time_to_live{0}; // of what nobody uses; zero: no end
};

// An entry as it may be kept elsewhere, to be put back into an empty index.
struct tier_record {
  tier_entry_id id = 0;
  tier_entry_id parent = 0; // 0: behind nothing
  std::uint64_t salt = 0;
  prefix_hash name;
  std::uint32_t disk_slot = 0;
  std::vector<token_id> tokens;
};

struct tier_index_stats {
  by_level<std::uint32_t> used{}; // slots
  std::uint64_t entries = 0;
  by_level<std::uint64_t> evicted{}; // copies, for want of room
  std::uint64_t expired = 0;         // entries
  std::uint64_t covered = 0;         // tails that gave way to an entry that begins with the same tokens
  std::uint64_t dropped = 0;         // entries whose last copy was damaged or could not be written, and those behind them
};

class tier_index {
public:
  struct entry_view {
    std::uint64_t salt = 0;
    tier_entry_id parent = 0;
    prefix_hash name;
    std::span<const token_id> tokens; // all of a page, or a tail
    tier_slots slots;
    bool stored = false; // else it is being written
  };
  struct agreement {
    tier_entry_id id = 0; // 0: none
    int tokens = 0;
  };
  struct addition {
    tier_entry_id id = 0; // 0: no room
    bool fresh = false;   // locked, to be written to its slots; else it was there already
  };
  struct observer { // of what lies on disk
    std::function<void(const tier_record&)> stored;
    std::function<void(tier_entry_id)> dropped;
  };

  explicit tier_index(tier_index_config config);
  tier_index(const tier_index&) = delete;
  tier_index& operator=(const tier_index&) = delete;

  void observe(observer o) { observer_ = std::move(o); }
  bool enabled() const noexcept { return config_.slots[0] > 0 || config_.slots[1] > 0; }

  // Stored entries along the whole pages of `tokens`, from the first; at most blocks_max.
  std::vector<tier_entry_id> find(std::uint64_t salt, std::span<const token_id> tokens, std::size_t blocks_max) const;
  // Of the stored entries behind `parent` the one that agrees longest with the beginning of `tokens`.
  agreement closest(std::uint64_t salt, tier_entry_id parent, std::span<const token_id> tokens) const;
  tier_entry_id named(const prefix_hash& name) const; // 0: none
  bool contains(tier_entry_id id) const;
  entry_view view(tier_entry_id id) const;                 // precondition of these: contains(id)
  std::vector<tier_entry_id> path(tier_entry_id id) const; // from the first to `id`
  void touch(tier_entry_id id);

  // Behind `parent` (0: nothing), which must be here. `tokens`: at most a page.
  addition add(std::uint64_t salt, tier_entry_id parent, std::span<const token_id> tokens, const prefix_hash& name);
  // The end of what add() began: the slots that hold the page now. None: the entry goes.
  void written(tier_entry_id id, const by_level<bool>& holds);

  // Where to read from: locked until read() tells the end. With a host tier the copy is put there, too, where that has room.
  struct reading {
    tier_slots slots;
    tier_level from = tier_level::host;
  };
  reading read(tier_entry_id id);
  void was_read(tier_entry_id id, const reading& what, const moved_page& how);

  // It is `now`: what nobody used for too long goes.
  void expire(steady_time now);

  std::vector<tier_record> records() const; // of what is stored on disk, parents first
  // Precondition: nothing is here yet. Records that do not fit (a slot of others, a parent that is missing) are left out.
  void restore(std::span<const tier_record> records);

  tier_index_stats stats() const;
  void check_invariants() const;

private:
  struct entry {
    tier_entry_id id = 0;
    tier_entry_id parent = 0;
    std::uint64_t salt = 0;
    prefix_hash name;
    tier_slots slots;
    std::uint32_t children = 0;
    std::uint32_t locks = 0; // while it is written or read
    int length = 0;
    bool stored = false;
    bool gone = false; // from the tree; its slots are free with the last lock
    std::uint64_t last_used = 0;
    steady_time used_at{};
    std::array<token_id, static_cast<std::size_t>(limits::page_tokens)> tokens{};
    std::span<const token_id> held() const { return std::span(tokens).first(static_cast<std::size_t>(length)); }
  };
  struct place_key {
    std::uint64_t salt = 0;
    tier_entry_id parent = 0;
    std::span<const token_id> tokens;
  };
  struct by_place {
    using is_transparent = void;
    static place_key key_of(const entry* e) { return {e->salt, e->parent, e->held()}; }
    bool operator()(const place_key& a, const place_key& b) const;
    bool operator()(const entry* a, const entry* b) const { return (*this)(key_of(a), key_of(b)); }
    bool operator()(const entry* a, const place_key& b) const { return (*this)(key_of(a), b); }
    bool operator()(const place_key& a, const entry* b) const { return (*this)(a, key_of(b)); }
  };
  struct tier {
    std::uint32_t next = 0; // never used before
    std::vector<std::uint32_t> free;
    std::uint32_t used = 0;
    std::set<std::pair<std::uint64_t, tier_entry_id>> order; // by last use; those in the tree that have a copy here
  };

  entry& at(tier_entry_id id);
  const entry& at(tier_entry_id id) const;
  entry& enter(const place_key& place, const prefix_hash& name, tier_entry_id id);
  void drop_covered(const entry& by);
  bool may_go(const entry& e, tier_level level) const;
  std::optional<std::uint32_t> take_slot(tier_level level);
  void give_slot(tier_level level, std::uint32_t slot);
  void put_copy(entry& e, tier_level level, std::uint32_t slot);
  void lose_copy(entry& e, tier_level level); // from the tree's view; the slot stays the caller's
  void leave(entry& e);                       // childless: out of the tree
  std::uint64_t drop(tier_entry_id id);       // with all behind it; how many
  void unlock(entry& e);
  void erase_gone(tier_entry_id id);
  tier_record record_of(const entry& e) const;

  tier_index_config config_;
  by_level<tier> tiers_;
  std::unordered_map<tier_entry_id, entry> entries_;
  std::set<entry*, by_place> places_;
  std::unordered_map<prefix_hash, tier_entry_id, hash_of_prefix_hash> names_;
  observer observer_;
  tier_entry_id next_id_ = 1;
  std::uint64_t clock_ = 0; // counts uses
  steady_time now_{};
  tier_index_stats counters_;
};

} // namespace troupe
