// Pages of a shard that a transfer reads or fills: kept from eviction and from everybody else until it has ended.
#include <algorithm>

#include "base/check.hpp"
#include "memory/kv_shard_memory.hpp"

namespace troupe {

prefix_position kv_shard_memory::position_of(std::uint64_t salt, std::span<const token_id> tokens) const {
  return cache_.walk(cache_.root(salt), tokens, tokens.size() / static_cast<std::size_t>(limits::page_tokens));
}

std::optional<prefix_hash> kv_shard_memory::published_by(lease_id lease) const {
  const auto found = leases_.find(lease);
  return found == leases_.end() ? std::nullopt : std::optional(found->second.at.hash);
}

kv_shard_memory::hold_id kv_shard_memory::hold(page_handle deepest) {
  const auto id = next_hold_++;
  auto& nodes = holds_[id].nodes;
  nodes = cache_.path_to({0, {}, deepest, 0});
  for (const auto& node : nodes)
    cache_.keep(node);
  return id;
}

std::optional<page_handle> kv_shard_memory::hold_fresh(hold_id hold, const prefix_cache::may_go_fn& may_go) {
  if (pool_.free_pages() == 0 && cache_.evict(1, may_go) == 0)
    return std::nullopt;
  auto& h = holds_.at(hold);
  const auto last = !h.fresh.empty()   ? std::optional(h.fresh.back().page)
                    : !h.nodes.empty() ? std::optional(h.nodes.back().page)
                                       : std::nullopt;
  const auto page = pool_.allocate(1, last);
  TROUPE_CHECK(page.has_value());
  h.fresh.push_back(page->front());
  return page->front();
}

void kv_shard_memory::drop_fresh(hold_id hold, page_handle page) {
  TROUPE_CHECK(std::erase(holds_.at(hold).fresh, page) == 1);
  pool_.release(page);
}

std::optional<page_handle> kv_shard_memory::adopt(hold_id hold, prefix_position& at, std::span<const token_id> tokens,
                                                  page_handle page) {
  constexpr auto block_tokens = static_cast<std::size_t>(limits::page_tokens);
  auto& h = holds_.at(hold);
  TROUPE_CHECK(std::erase(h.fresh, page) == 1);
  const bool whole = tokens.size() == block_tokens;
  const auto node = whole ? cache_.publish(at, tokens.first<block_tokens>(), page) : cache_.publish_tail(at, tokens, page);
  if (node == page) {
    h.nodes.push_back(page);
    return node;
  }
  if (node && whole)
    h.nodes.push_back(*node); // a twin, retained for us
  cache_.release(page);
  return node;
}

void kv_shard_memory::let_go(hold_id hold) {
  const auto found = holds_.find(hold);
  TROUPE_CHECK(found != holds_.end());
  for (const auto& page : found->second.fresh)
    pool_.release(page);
  for (auto node = found->second.nodes.rbegin(); node != found->second.nodes.rend(); ++node)
    cache_.release(*node);
  holds_.erase(found);
}

std::vector<page_handle> kv_shard_memory::touch(const prefix_position& at, std::span<const token_id> rest) {
  const auto behind = rest.empty() ? prefix_agreement{} : cache_.closest(at, rest);
  const auto id = hold(behind.page.generation != 0 ? behind.page : at.last);
  auto touched = holds_.at(id).nodes;
  let_go(id);
  return touched;
}

} // namespace troupe
