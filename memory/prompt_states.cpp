#include "memory/prompt_states.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace troupe {

prompt_states::prompt_states(std::uint32_t most) : most_(std::min(most, limits::prompt_states_max)) {}

void prompt_states::put(const prefix_position& at, std::span<const token_id> tokens, page_handle page, prompt_state_ptr state) {
  if (most_ == 0 || !state)
    return;
  const auto key = hash_tokens(at.hash, tokens);
  if (const auto same = by_key_.find(key); same != by_key_.end())
    erase(same->second);
  if (const auto former = by_page_.find(page.page); former != by_page_.end())
    erase(former->second);
  while (entries_.size() >= most_)
    erase(entries_.begin());
  entries_.push_back({key, page, static_cast<int>(tokens.size()), std::move(state)});
  by_key_.emplace(key, std::prev(entries_.end()));
  by_page_.emplace(page.page, std::prev(entries_.end()));
}

std::optional<prompt_states::found> prompt_states::find(const prefix_cache& cache, const prefix_position& at,
                                                        std::span<const token_id> tokens) {
  const auto known = by_key_.find(hash_tokens(at.hash, tokens));
  if (known == by_key_.end() || known->second->tokens != static_cast<int>(tokens.size()) ||
      !cache.agrees(at, known->second->page, tokens))
    return std::nullopt;
  entries_.splice(entries_.end(), entries_, known->second);
  return found{known->second->page, known->second->state};
}

void prompt_states::move(page_handle gone, page_handle heir) {
  const auto at = by_page_.find(gone.page);
  if (at == by_page_.end())
    return;
  if (heir.generation == 0 || by_page_.contains(heir.page))
    return erase(at->second);
  const auto moved = at->second;
  by_page_.erase(at);
  moved->page = heir;
  by_page_.emplace(heir.page, moved);
}

void prompt_states::erase(entry_list::iterator at) {
  by_key_.erase(at->key);
  by_page_.erase(at->page.page);
  entries_.erase(at);
}

void prompt_states::check_invariants(const prefix_cache& cache) const {
  TROUPE_CHECK(entries_.size() <= most_ && by_key_.size() == entries_.size() && by_page_.size() == entries_.size());
  for (const auto& e : entries_)
    TROUPE_CHECK(e.state && cache.holds(e.page.page));
}

} // namespace troupe
