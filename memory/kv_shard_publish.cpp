// What of a prompt is found beyond its whole pages, and what becomes of what a step has computed.
#include <algorithm>

#include "base/check.hpp"
#include "memory/kv_shard_memory.hpp"

namespace troupe {

namespace {
constexpr auto block_tokens = static_cast<std::size_t>(limits::page_tokens);
}

// Behind the whole pages: all the rest where its state is kept; else as much as agrees with any page there, but for the last
// token, which is computed anew, since the choice of the next one needs its result.
kv_shard_memory::reuse kv_shard_memory::find_rest(const holding& h, const reserve_pages& ask) {
  if (!config_.prefix.reuse)
    return {};
  const auto rest = std::span(*ask.tokens).subspan(h.at.depth * block_tokens);
  if (ask.want_state && rest.size() <= block_tokens)
    if (auto known = states_.find(cache_, h.at, rest))
      return {known->page, static_cast<int>(rest.size()), std::move(known->state)};
  if (!config_.prefix.partial_pages)
    return {};
  const auto best = cache_.closest(h.at, rest.first(std::min(rest.size() - 1, block_tokens)));
  return {best.page, best.tokens, nullptr};
}

void kv_shard_memory::let_source_go(holding& h) {
  if (h.source.generation != 0)
    cache_.release(std::exchange(h.source, {}));
}

void kv_shard_memory::publish(const publish_pages& tell) {
  const auto found = leases_.find(tell.lease);
  if (found == leases_.end())
    return;
  holding& h = found->second;
  if (tell.copied)
    let_source_go(h);
  TROUPE_CHECK(h.source.generation == 0 || tell.tokens.empty()); // the copy is not made yet, so nothing behind it is there
  const auto end = publish_to(h, tell.position, tell.tokens);
  if (end.page.generation != 0)
    states_.put(end.before, end.tokens, end.page, tell.state);
  if (!tell.pin || !config_.prefix.reuse)
    return;
  const auto most = std::uint64_t{config_.pages} * static_cast<std::uint64_t>(config_.prefix.pinned_percent) / 100;
  const bool tail = end.page.generation != 0 && cache_.is_tail(end.page.page);
  counters_.pins_refused += !cache_.pin(h.at, tail ? std::optional(end.page) : std::nullopt, static_cast<std::uint32_t>(most));
}

kv_shard_memory::published_end kv_shard_memory::publish_to(holding& h, int position, std::span<const token_id> tokens) {
  if (!h.publishing || tokens.empty())
    return {};
  TROUPE_CHECK(position == static_cast<int>(h.at.depth) * limits::page_tokens);
  TROUPE_CHECK(h.at.depth + pages_for(static_cast<int>(tokens.size())) <= h.pages.size());
  published_end end;
  for (; tokens.size() >= block_tokens; tokens = tokens.subspan(block_tokens)) {
    const auto own = h.pages[h.at.depth];
    end.before = h.at;
    end.tokens = tokens.first(block_tokens);
    const auto known = cache_.publish(h.at, tokens.first<block_tokens>(), own);
    if (!known) {
      h.publishing = false;
      return {};
    }
    if (*known != own)
      h.twins.push_back(*known);
    end.page = *known;
  }
  if (tokens.empty())
    return end;
  if (!config_.prefix.partial_pages)
    return {};
  return {h.at, cache_.publish_tail(h.at, tokens, h.pages[h.at.depth]), tokens};
}

} // namespace troupe
