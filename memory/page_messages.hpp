// What a batcher asks of a KV shard, and what the shard answers. Plain values, so that both sides are tested without actors.
//
// A lease names one reservation and is never used twice by a batcher: an answer or a release that is late by one run of the
// request names a lease that nobody holds any more, and does nothing.
//
//   request         answer                            most outstanding
//   reserve_pages   pages_reserved or pages_refused   limits::reservations_outstanding_max a batcher
//   grow_pages      pages_grown or pages_refused      one a lease
//   publish_pages   none                              one a lease and step
//   release_pages   pages_released                    one a lease; unknown leases are answered, too
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/ids.hpp"
#include "base/prompt_state.hpp"
#include "base/result.hpp"

namespace troupe {

using lease_id = std::uint64_t; // 0: none

// Where a shard's memory stands. `serial` grows with every answer, so that a late report does not replace a newer one.
struct shard_report {
  std::uint64_t serial = 0;
  std::uint32_t pages = 0;  // all
  std::uint32_t free = 0;   // hold nothing
  std::uint32_t cached = 0; // hold published tokens, used by no lease; given up when the free ones run short
  std::uint32_t available() const noexcept { return free + cached; }
};

// Pages for a sequence that computes `tokens` from the start; pages that already hold its first tokens are shared with it.
struct reserve_pages {
  std::uint32_t shard = 0;
  lease_id lease = 0;
  request_id id;
  std::shared_ptr<const std::vector<token_id>> tokens; // at least 1
  std::uint64_t salt = 0;          // of the tenant; only pages published under the same salt are shared
  int need_tokens = 0;             // that the pages must hold; at least tokens->size()
  std::uint32_t headroom_pages = 0; // that must stay available afterwards, for the growth of those that run; else refused
  bool want_state = false;         // a kept state of exactly these tokens is of use
};

// Room for need_tokens in all; grows by half where that many pages are available, never past max_tokens.
struct grow_pages {
  std::uint32_t shard = 0;
  lease_id lease = 0;
  request_id id;
  int need_tokens = 0;
  int max_tokens = 0; // the most the sequence can come to hold; at least need_tokens
};

// The pages of positions [position, position + tokens.size()) are computed by a step that has ended: others may share those
// that are full, and copy from the last, in part full. `position` is where the last publication ended, rounded down to whole
// pages, or the reserved shared_tokens.
struct publish_pages {
  std::uint32_t shard = 0;
  lease_id lease = 0;
  request_id id;
  int position = 0;
  std::vector<token_id> tokens;
  bool copied = false;         // the step that made the lease's copy has ended
  bool pin = false;            // keep them longer than others, within the shard's share for that
  prompt_state_ptr state = {}; // of the prompt that ends with `tokens`; null: none is known
};

// Publishes as above (nothing where tokens is empty), then gives every page of the lease back.
struct release_pages {
  std::uint32_t shard = 0;
  lease_id lease = 0;
  request_id id;
  int position = 0;
  std::vector<token_id> tokens;
};

// The first cached_tokens are computed already, once the copy is made: shared_tokens of them in whole pages that others hold,
// too, the rest in `copy_from`, which is to be copied to the page behind those before the page is used. It stays as it is until
// a publication says `copied`, or the release.
struct pages_reserved {
  std::uint32_t shard = 0;
  lease_id lease = 0;
  request_id id;
  std::vector<page_id> pages; // in order of positions
  int shared_tokens = 0;      // whole pages
  int cached_tokens = 0;       // fewer than tokens->size(), unless there is a state
  std::optional<page_id> copy_from = {};
  prompt_state_ptr state = {}; // of exactly `tokens`; the next token is chosen from it
  shard_report report;
};

struct pages_grown {
  std::uint32_t shard = 0;
  lease_id lease = 0;
  request_id id;
  std::vector<page_id> added; // behind those the lease had
  shard_report report;
};

// The lease is as it was before the request. errc::no_memory: too few pages are available now; any other: the shard did not
// do it (unavailable, timeout), and whether a reservation exists is unknown.
struct pages_refused {
  std::uint32_t shard = 0;
  lease_id lease = 0;
  request_id id;
  error fault;
  shard_report report; // serial 0 where none is known
};

struct pages_released {
  std::uint32_t shard = 0;
  lease_id lease = 0;
  shard_report report;
};

} // namespace troupe
