// Sequences with a budget: once their pages hold as many tokens, they are read again for their scores, and most of them stay.
//
// All of it follows from the sequence's own tokens, at lengths that depend on nothing else: a sequence that starts anew lets go of
// the same tokens at the same places.
#include <algorithm>

#include "actors/batcher/batch_schedule.hpp"
#include "base/check.hpp"
#include "memory/kv_shard_memory.hpp"
#include "memory/token_eviction.hpp"

namespace troupe {

std::optional<error> batch_schedule::budget_refusal(const batch_request& r) const {
  if (r.budget_tokens == 0)
    return std::nullopt;
  if (r.budget_tokens < 2 * limits::page_tokens || r.budget_tokens % limits::page_tokens != 0 || r.window.bounded())
    return fail(errc::invalid_argument, "a budget has whole pages, two at least, and no window");
  if (r.keep_percent < 1 || r.keep_percent > limits::keep_percent_max)
    return fail(errc::invalid_argument, "keep_percent is " + std::to_string(r.keep_percent) + "; it must lie within 1 and " +
                                            std::to_string(limits::keep_percent_max));
  return std::nullopt;
}

// Tokens that the pages of `s` must have room for now: all, or what its next step under the budget needs.
int batch_schedule::room_wanted(const batch_sequence& s) const {
  if (!s.budgeted())
    return s.length();
  if (!s.eviction_due())
    return std::min(s.length() - s.evicted, s.request.budget_tokens);
  if (s.to_be_read_again())
    return s.request.budget_tokens + reading_rows();
  // What stays goes to pages of its own, with room for one more.
  return (s.shared_pages() + static_cast<int>(pages_for(s.request.keep_tokens() + 1))) * limits::page_tokens;
}

int batch_schedule::reading_rows() const { return std::clamp(config_.step_tokens / 2, 1, reading_rows_max); }

// Reads the next chunk again, behind all that the pages hold.
sequence_step batch_schedule::reading_of(const batch_sequence& s) const {
  const auto chunk = read_again_from(s.read_again, s.request.budget_tokens, reading_rows());
  sequence_step part;
  part.id = s.request.id;
  for (int i = chunk.lead; i < chunk.end; ++i)
    part.tokens.push_back(s.token(s.token_at(i)));
  part.position = s.request.budget_tokens;
  part.evicted = s.evicted;
  part.pages = s.pages;
  part.scores = attention_score::peak;
  return part;
}

void batch_schedule::take_scores(batch_sequence& s, const std::vector<float>& scores) {
  const auto budget = static_cast<std::size_t>(s.request.budget_tokens);
  TROUPE_CHECK(scores.size() >= budget);
  s.scores.resize(budget);
  for (std::size_t i = 0; i < budget; ++i)
    s.scores[i] = std::max(s.scores[i], scores[i]);
  s.read_again = read_again_from(s.read_again, s.request.budget_tokens, reading_rows()).end;
}

// Everything was read again: from the next step on, `s` is what stays of it. Should that step fail, it starts anew.
kv_compaction batch_schedule::evict(batch_sequence& s) {
  kv_compaction out;
  out.id = s.request.id;
  out.from = s.pages;
  out.to = std::make_shared<const page_table>(s.pages->begin() + s.shared_pages(), s.pages->end());
  out.kept = choose_kept(s.scores, s.request.keep_tokens());
  std::vector<int> held;
  for (const auto position : out.kept)
    held.push_back(s.token_at(position));
  s.held = std::move(held);
  s.pages = out.to;
  s.published = 0;
  const auto gone = s.request.budget_tokens - s.request.keep_tokens();
  s.evicted += gone;
  s.scores.clear();
  s.read_again = 0;
  s.moving = true;
  ++counters_.evictions;
  counters_.evicted_tokens += static_cast<std::uint64_t>(gone);
  return out;
}

} // namespace troupe
