// Sequences with a window or a budget: what they hold at most and share; and how a window's pages are used again.
#include <algorithm>

#include "actors/batcher/batch_schedule.hpp"
#include "memory/kv_shard_memory.hpp"

namespace troupe {

std::optional<error> batch_schedule::window_refusal(const batch_request& r) const {
  if (!r.window.bounded() && r.budget_tokens == 0)
    return std::nullopt;
  if (r.window.bounded() && (r.window.sink_pages < 0 || r.ring_pages <= r.window.recent_pages))
    return fail(errc::invalid_argument, "a window needs a page more than it shows");
  if (pages_max(r) > pages_max({}))
    return fail(errc::no_memory, "the context has " + std::to_string(pages_max(r)) + " pages, the KV memory holds " +
                                     std::to_string(pages_max({})) + " a sequence");
  if (r.prompt_length > limits::context_tokens_max - r.max_new_tokens)
    return fail(errc::context_full, "prompt and answer exceed " + std::to_string(limits::context_tokens_max) + " tokens");
  return std::nullopt;
}

int batch_schedule::pages_max(const batch_request& r) const {
  if (r.window.bounded())
    return r.window.sink_pages + r.ring_pages;
  if (r.budget_tokens > 0)
    return static_cast<int>(pages_for(r.budget_tokens + reading_rows()));
  return static_cast<int>(*std::min_element(config_.shard_pages.begin(), config_.shard_pages.end()));
}

// The next step can compute something. (A windowed sequence goes on page by page.)
bool batch_schedule::has_room(const batch_sequence& s) const {
  return s.capacity() >= room_wanted(s) || (s.keeps_private() && !s.eviction_due() && s.room() > 0);
}

// What lies within the window is as it would be without one, so others may have it; what comes later is the sequence's alone.
int batch_schedule::shareable(const batch_sequence& s, int tokens) const {
  const auto& window = s.request.window;
  if (window.bounded())
    return std::min(tokens, (window.sink_pages + window.recent_pages) * limits::page_tokens);
  return s.budgeted() ? std::min(tokens, s.request.budget_tokens) : tokens;
}

// The beginning that others' pages may stand for.
std::shared_ptr<const std::vector<token_id>> batch_schedule::sought(const batch_sequence& s) const {
  const int tokens = s.own_pages ? std::clamp(s.request.window.sinks(), 1, s.length()) : shareable(s, s.length());
  return tokens == s.length() ? s.base : std::make_shared<const std::vector<token_id>>(s.slice(0, tokens));
}

// The sequence holds its window's pages and goes on in those that no step will read again: in its own as they are, and in fresh
// ones in place of those that it shares with others. The step in flight began at `computed`, too, and sees no more.
void batch_schedule::turn_ring(batch_sequence& s, batch_actions& out) {
  const auto size = static_cast<int>(s.pages->size());
  const auto wanted = static_cast<int>(pages_for(std::min(computed_max(s), s.length() + limits::page_tokens)));
  const int unread = s.computed / limits::page_tokens - s.request.window.recent_pages + 1; // pages before it, but for the sinks
  const int end = std::min(unread, s.ring_tail + wanted - size);
  if (s.ring_tail >= end)
    return;
  if (s.ring_tail < s.shared_pages()) {
    s.replacing = std::min(s.shared_pages(), end) - s.ring_tail;
    const int need = (s.lease_pages + s.replacing) * limits::page_tokens;
    ask_growth(s, {s.shard, s.lease, s.request.id, need, need}, static_cast<std::uint32_t>(s.replacing), out);
    return;
  }
  auto table = std::make_shared<page_table>(*s.pages);
  for (; s.ring_tail < end; ++s.ring_tail) {
    table->push_back((*table)[static_cast<std::size_t>(s.ring_tail)]);
    (*table)[static_cast<std::size_t>(s.ring_tail)] = no_page;
  }
  s.pages = std::move(table);
}

} // namespace troupe
