#include "cpu/step_batch.hpp"

#include <algorithm>
#include <string>

#include "config/limits.hpp"
#include "cpu/kv_compaction.hpp"

namespace troupe::cpu {
namespace {

std::optional<error> fault_of(const sequence_step& s, const batch_bounds& bounds) {
  if (s.tokens.empty() && (!s.state || !s.sample))
    return fail(errc::invalid_argument, "a step of no tokens");
  if (s.tokens.empty() && (s.position < 1 || s.state->bytes.size() != bounds.state_bytes))
    return fail(errc::invalid_argument, "a state that is not of this model");
  if (s.window.sink_pages < 0 || s.window.recent_pages < 0)
    return fail(errc::invalid_argument, "a window of less than no pages");
  if (s.evicted < 0)
    return fail(errc::invalid_argument, "less than no tokens were evicted");
  if (s.position < 0 || !s.pages)
    return fail(errc::invalid_argument, "a step without a position or a page table");
  const std::uint64_t end = static_cast<std::uint64_t>(s.position) + s.tokens.size();
  const std::uint64_t pages = (end + limits::page_tokens - 1) / limits::page_tokens;
  if (pages > s.pages->size())
    return fail(errc::invalid_argument, "position " + std::to_string(end - 1) + " lies beyond the page table");
  const auto hidden_end = static_cast<std::size_t>(s.window.hidden_end(s.position) / limits::page_tokens);
  for (std::size_t i = 0; i < pages; ++i)
    if ((*s.pages)[i] >= bounds.pages && (i < static_cast<std::size_t>(s.window.sink_pages) || i >= hidden_end))
      return fail(errc::invalid_argument, "page " + std::to_string((*s.pages)[i]) + " is not in the pool");
  for (const token_id t : s.tokens)
    if (t < 0 || t >= bounds.vocabulary)
      return fail(errc::invalid_argument, "token " + std::to_string(t) + " is not in the vocabulary");
  if (s.sample && !s.sampling)
    return fail(errc::invalid_argument, "a token is to be chosen without sampling parameters");
  return std::nullopt;
}

} // namespace

result<void> lay_out(const step_plan& plan, const batch_bounds& bounds, step_batch& batch,
                     std::vector<sequence_result>& results) {
  batch.sequences.clear();
  batch.rows.clear();
  batch.sampled.clear();
  batch.sampled_by.clear();
  batch.resumed.clear();
  batch.turned = false;
  results.assign(plan.sequences.size(), {});
  for (const auto& c : plan.copies)
    if (c.from >= bounds.pages || c.to >= bounds.pages)
      return fail(errc::invalid_argument, "page " + std::to_string(std::max(c.from, c.to)) + " is not in the pool");
  for (const auto& c : plan.compactions)
    if (auto sound = check_compaction(c, bounds.pages); !sound)
      return sound;
  if (plan.tokens() > bounds.step_tokens_max)
    return fail(errc::too_large, "a step of " + std::to_string(plan.tokens()) + " tokens; at most " +
                                     std::to_string(bounds.step_tokens_max) + " fit");
  batch.sequences.reserve(plan.sequences.size()); // sampled_by points into it
  for (std::size_t i = 0; i < plan.sequences.size(); ++i) {
    const auto& s = plan.sequences[i];
    results[i].id = s.id;
    results[i].fault = fault_of(s, bounds);
    if (results[i].fault)
      continue;
    const int count = static_cast<int>(s.tokens.size());
    if (count == 0) {
      batch.resumed.push_back({&s, i, static_cast<int>(batch.rows.size()), 0});
      continue;
    }
    const auto last = static_cast<int>(s.position) + count - 1;
    const bool turned = s.window.position_for_sinks(last) != last && s.window.sink_pages > 0;
    batch.sequences.push_back({&s, i, static_cast<int>(batch.rows.size()), count, turned});
    batch.turned = batch.turned || turned;
    for (int t = 0; t < count; ++t) {
      const std::int32_t position = s.position + t;
      batch.rows.push_back({s.tokens[static_cast<std::size_t>(t)], position, s.window.position_for_sinks(position),
                            (*s.pages)[static_cast<std::size_t>(position / limits::page_tokens)],
                            position % limits::page_tokens});
    }
    if (s.sample) {
      batch.sampled.push_back(static_cast<int>(batch.rows.size()) - 1);
      batch.sampled_by.push_back(&batch.sequences.back());
    }
  }
  return {};
}

} // namespace troupe::cpu
