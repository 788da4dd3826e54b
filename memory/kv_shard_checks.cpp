// What must always hold between a shard's pool, its tree, its states and its leases.
#include "base/check.hpp"
#include "memory/kv_shard_memory.hpp"

namespace troupe {

void kv_shard_memory::check_invariants() const {
  pool_.check_invariants();
  cache_.check_invariants();
  states_.check_invariants(cache_);
  std::vector<std::uint32_t> holders(config_.pages);
  std::vector<bool> shared(config_.pages), written(config_.pages);
  const auto slot = [&](page_handle page) {
    TROUPE_CHECK(pool_.valid(page));
    return page.page - config_.first;
  };
  for (const auto& [lease, h] : leases_) {
    TROUPE_CHECK(lease != 0 && h.at.depth <= h.pages.size());
    if (h.source.generation != 0)
      ++holders[slot(h.source)];
    for (const auto& twin : h.twins) {
      TROUPE_CHECK(cache_.holds(twin.page) && !cache_.is_tail(twin.page));
      ++holders[slot(twin)];
      shared[slot(twin)] = true;
    }
    for (std::size_t i = 0; i < h.pages.size(); ++i) {
      const auto at = slot(h.pages[i]);
      ++holders[at];
      if (i < h.at.depth) {
        shared[at] = true;
        continue;
      }
      TROUPE_CHECK(!written[at]); // what a lease may still write is its own, and at most the page being filled is a tail
      written[at] = true;
      TROUPE_CHECK(!cache_.holds(h.pages[i].page) || (i == h.at.depth && cache_.is_tail(h.pages[i].page)));
    }
  }
  for (const auto& [hold, h] : holds_) {
    for (const auto& page : h.nodes) {
      ++holders[slot(page)];
      TROUPE_CHECK(cache_.holds(page.page));
    }
    for (const auto& page : h.fresh) {
      const auto at = slot(page);
      ++holders[at];
      TROUPE_CHECK(!cache_.holds(page.page) && !shared[at] && !written[at] && holders[at] == 1);
    }
  }
  std::uint32_t free = 0, cached = 0;
  for (std::uint32_t i = 0; i < config_.pages; ++i) {
    const page_id page = config_.first + i;
    TROUPE_CHECK(!shared[i] || !written[i]);
    TROUPE_CHECK(pool_.references_of(page) == holders[i] + (cache_.holds(page) ? 1 : 0));
    free += pool_.references_of(page) == 0;
    cached += holders[i] == 0 && cache_.holds(page);
  }
  TROUPE_CHECK(free == pool_.free_pages() && cached == cache_.idle_pages());
}

std::optional<std::string> kv_shard_memory::stale_page(lease_id lease, const std::vector<page_id>& pages) const {
  const auto found = leases_.find(lease);
  std::unordered_map<page_id, page_handle> held;
  if (found != leases_.end())
    for (const auto& page : found->second.pages)
      held.emplace(page.page, page);
  for (std::size_t i = 0; i < pages.size(); ++i) {
    if (pages[i] == no_page)
      continue;
    const auto own = held.find(pages[i]);
    if (own == held.end() || !pool_.valid(own->second))
      return "page " + std::to_string(pages[i]) + " of shard " + std::to_string(config_.index) + " is stale: lease " +
             std::to_string(lease) + (found == leases_.end() ? " is gone" : " was not given it");
  }
  return std::nullopt;
}

} // namespace troupe
