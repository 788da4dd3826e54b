// One request inside the batcher: its tokens, where its keys and values lie, and what is under way with it.
// Plain data of batch_schedule, which alone changes it.
//
// Life: waiting -> reserving -> running -> gone. Back to waiting when a reservation is refused, when it is pre-empted, and when
// its shard dies; its tokens stay, its pages do not. A sequence in the step that runs is never requeued or forgotten before
// that step's end: `ended`, `preempt` and `pages_lost` note what happens then.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "actors/batcher/batch_request.hpp"
#include "config/limits.hpp"
#include "memory/prefix_hash.hpp"

namespace troupe {

enum class sequence_state { waiting, reserving, running };

struct batch_sequence {
  batch_request request;
  std::uint64_t serial = 0; // of its submission
  double arrival = 0;       // seconds since the schedule's first submission

  std::optional<std::uint64_t> affinity; // of equal ones, the first to run is joined
  std::vector<prefix_hash> beginnings; // of the request's tokens, a page more each
  std::shared_ptr<const std::vector<token_id>> base; // request.tokens, or these and what was generated until the last requeue
  std::vector<token_id> added;                       // generated since
  std::vector<token_count> counts;                   // where the sampling penalises
  std::unordered_map<token_id, std::size_t> count_of;
  int cached_tokens = -1;                            // at the first admission; -1: not admitted yet
  bool answering = false;                            // tokens_generated was sent

  sequence_state state = sequence_state::waiting;
  std::uint32_t shard = 0;
  lease_id lease = 0;                      // 0: none
  std::shared_ptr<const page_table> pages; // of the lease
  int computed = 0;                        // tokens whose keys and values are in the pages, once the copy is made
  int published = 0;                       // of those, told to the shard; whole pages
  int lease_pages = 0;
  // Where there is a window or a budget, nothing is published before the end: what is published may not be written again.
  int ring_tail = 0;      // pages before it, but for the sinks, are not read any more
  int replacing = 0;      // shared pages from ring_tail on for which the growth under way asks others
  bool own_pages = false; // there were none: the next try shares nothing but a window's sinks

  // Where there is a budget. The position of a token is its number, less those evicted.
  int evicted = 0;
  std::vector<int> held;     // after an eviction: the tokens that stayed, by position; those behind them follow without gap
  int read_again = 0;        // positions, for the next eviction
  std::vector<float> scores; // so far
  bool moving = false;       // the step in flight moves what stayed
  std::optional<page_copy> copy;           // to be made by the next step
  bool copied = false;                     // that step has ended; the shard is not told yet
  prompt_state_ptr kept_state;             // all is computed, and the next token is chosen from this

  bool growing = false;                // a grow_pages is unanswered
  bool grow_refused = false;           // the last one was refused
  std::uint64_t asked_at_change = 0;   // the shard's change count when pages were last asked for
  std::vector<std::uint64_t> refused_at; // by shard: its change count at the refused reservation, plus 1; 0: not refused
  int reservation_failures = 0;        // in a row, other than for want of memory

  bool in_step = false;
  std::uint64_t last_step = 0;
  int step_failures = 0; // in a row
  bool suspect = false;  // was in a step that failed as a whole: the next try is alone
  bool ended = false;    // its one end was told
  bool preempt = false;
  bool pages_lost = false;

  int length() const noexcept { return static_cast<int>(base->size() + added.size()); }
  token_id token(int i) const noexcept {
    const auto at = static_cast<std::size_t>(i);
    return at < base->size() ? (*base)[at] : added[at - base->size()];
  }
  int generated() const noexcept { return length() - request.prompt_length; }
  int remaining() const noexcept { return length() - computed; } // tokens to compute before the next one can be chosen
  int in_pages() const noexcept { return copy ? published : computed; }
  bool windowed() const noexcept { return request.window.bounded(); }
  int shared_pages() const noexcept { return published / limits::page_tokens; }
  bool turned() const noexcept { return ring_tail > request.window.sink_pages; }
  bool budgeted() const noexcept { return request.budget_tokens > 0; }
  bool keeps_private() const noexcept { return windowed() || budgeted(); }
  int position() const noexcept { return computed - evicted; } // of the next token to compute
  int token_at(int at) const noexcept {
    const auto i = static_cast<std::size_t>(at);
    return i < held.size() ? held[i] : at + evicted;
  }
  bool eviction_due() const noexcept { return budgeted() && position() == request.budget_tokens && remaining() > 0; }
  bool to_be_read_again() const noexcept { return eviction_due() && read_again < request.budget_tokens; }
  // It holds pages that it can't write, beside as many as it needs.
  bool shares_in_vain() const noexcept {
    return budgeted() && ((eviction_due() && shared_pages() > 0) || lease_pages > static_cast<int>(pages->size()));
  }
  // Tokens that the next step may compute.
  int room() const noexcept {
    const int until_eviction = budgeted() ? request.budget_tokens - position() : remaining();
    return std::min({remaining(), capacity() - position(), until_eviction});
  }
  void drop_pages() noexcept {
    pages.reset();
    copy.reset();
    kept_state.reset();
    computed = published = lease_pages = ring_tail = replacing = evicted = read_again = 0;
    held.clear();
    scores.clear();
    moving = false;
    growing = grow_refused = copied = preempt = pages_lost = false;
  }
  int capacity() const noexcept { return pages ? static_cast<int>(pages->size()) * limits::page_tokens : 0; }
  void count(token_id token_seen, bool in_answer) {
    if (!request.sampling->penalises())
      return;
    const auto [at, fresh] = count_of.try_emplace(token_seen, counts.size());
    if (fresh)
      counts.push_back({token_seen, 0, 0});
    token_count& c = counts[at->second];
    ++(in_answer ? c.in_answer : c.in_prompt);
  }
  std::vector<token_id> slice(int from, int to) const {
    std::vector<token_id> out;
    out.reserve(static_cast<std::size_t>(to - from));
    for (int i = from; i < to; ++i)
      out.push_back(token(i));
    return out;
  }
  batch_usage usage() const noexcept {
    const int hidden = std::max(0, request.window.hidden_end(length() - 1) - request.window.sinks());
    return {request.prompt_length, cached_tokens > 0 ? cached_tokens : 0, generated(), hidden + evicted};
  }
};

} // namespace troupe
