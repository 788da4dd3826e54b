// What a KV shard asks of the transfer stream, and what that answers: copies of whole pages between the device and the tiers
// below it. Plain values, so that both sides are tested without actors.
//
//   request        answer          most outstanding
//   move_pages     pages_moved     one a load and one of writes a shard; limits::tier_*_pages_max pages each
//   settle_moves   moves_settled   one a shard and transfer stream
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.hpp"
#include "memory/prefix_hash.hpp"

namespace troupe {

enum class tier_level { host, disk }; // nearest first
inline constexpr std::size_t tier_levels = 2;
constexpr std::size_t index_of(tier_level level) noexcept {
  return static_cast<std::size_t>(level);
}

template <class T>
using by_level = std::array<T, tier_levels>;
using tier_slots = by_level<std::optional<std::uint32_t>>; // where copies of a page lie

enum class move_way {
  down, // the page is copied to each of the slots
  up,   // the page is read from the slot in `from`, and copied to the other one where that is given
};

// The page belongs to the transfer until its answer: down, nobody writes it; up, nobody reads it either.
struct page_move {
  move_way way = move_way::down;
  page_id page = 0;
  prefix_hash name; // of the page's tokens and all before: what a slot holds is told by it
  tier_slots slots;
  tier_level from = tier_level::host; // of an `up`
};

struct move_pages {
  std::uint32_t shard = 0;
  std::uint64_t number = 0; // grows with each
  std::vector<page_move> moves;
};

enum class move_end {
  done,
  damaged, // up: the slot holds something else, or a torn or altered copy
  failed,  // the device or the operating system refused
};

struct moved_page {
  move_end end = move_end::failed; // of an `up`: the page holds what was asked for only if it is done
  by_level<bool> holds{};          // which of the move's slots hold the page now
};

struct pages_moved {
  std::uint32_t shard = 0;
  std::uint64_t number = 0;
  std::vector<moved_page> moves; // one for each asked for
};

// Answered when every move that was asked for before is over.
struct settle_moves {
  std::uint32_t shard = 0;
  std::uint32_t incarnation = 0; // of the transfer stream that is asked
};

struct moves_settled {
  std::uint32_t shard = 0;
  std::uint32_t incarnation = 0;
};

} // namespace troupe
