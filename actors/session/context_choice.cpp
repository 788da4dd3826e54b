#include "actors/session/context_choice.hpp"

#include <algorithm>
#include <string>

#include "memory/token_eviction.hpp"

namespace troupe {

namespace {

constexpr int page_tokens = limits::page_tokens;
constexpr int spare_pages_max = 16; // a step reads no more of a prompt than fits there once the window is left

// The window within a context: all its pages but a few that take the place of those left behind.
result<context_choice> plan_window(int context_tokens, int sink_tokens) {
  context_choice out;
  const int pages = context_tokens / page_tokens;
  const int spare = std::clamp(pages / 8, 1, spare_pages_max);
  out.window.sink_pages = (sink_tokens + page_tokens - 1) / page_tokens;
  out.window.recent_pages = pages - out.window.sink_pages - spare;
  out.ring_pages = pages - out.window.sink_pages;
  if (const int least = out.window.sink_pages + 4 + spare; pages < least)
    return fail(errc::invalid_argument, "a context of " + std::to_string(context_tokens) + " tokens is too small for a window; " +
                                            std::to_string(least * page_tokens) + " are the least");
  return out;
}

} // namespace

result<context_choice> choose_context(overflow_policy policy, int context_tokens, int sink_tokens, std::optional<int> wanted,
                                      std::vector<token_id>& prompt) {
  const int length = static_cast<int>(prompt.size());
  const int room = context_tokens - length;
  if (policy == overflow_policy::refuse) {
    if (room < 0 || (room == 0 && wanted != 0))
      return fail(errc::context_full, "the prompt has " + std::to_string(length) + " tokens; the context of " +
                                          std::to_string(context_tokens) + " leaves no room for an answer");
    context_choice out;
    out.max_new_tokens = std::min(room, wanted.value_or(room));
    return out;
  }
  context_choice all;
  all.max_new_tokens = wanted.value_or(context_tokens);
  if (length + all.max_new_tokens <= context_tokens)
    return all;
  if (policy == overflow_policy::compress) {
    all.budget_tokens = context_tokens / page_tokens * page_tokens - reading_rows_max;
    if (all.budget_tokens < 4 * page_tokens)
      return fail(errc::invalid_argument, "a context of " + std::to_string(context_tokens) + " tokens is too small to be compressed; " +
                                              std::to_string(4 * page_tokens + reading_rows_max) + " are the least");
    return all;
  }
  auto planned = plan_window(context_tokens, sink_tokens);
  if (!planned)
    return planned;
  auto& out = *planned;
  out.max_new_tokens = all.max_new_tokens;
  const int shown = (out.window.sink_pages + out.window.recent_pages) * page_tokens;
  const int quarter = std::max(1, out.window.recent_pages / 4) * page_tokens;
  if (length > shown) {
    const int excess = length - (shown - quarter);
    out.dropped_tokens = (excess + quarter - 1) / quarter * quarter;
    const auto behind_sinks = prompt.begin() + out.window.sinks();
    prompt.erase(behind_sinks, behind_sinks + out.dropped_tokens);
  }
  return planned;
}

} // namespace troupe
