#include "memory/kv_shard_memory.hpp"

#include <algorithm>
#include <string>

#include "base/check.hpp"

namespace troupe {

kv_shard_memory::kv_shard_memory(kv_shard_config config)
    : config_(config), pool_(config.first, config.pages), cache_(pool_) {}

std::variant<pages_reserved, pages_refused> kv_shard_memory::reserve(const reserve_pages& ask) {
  TROUPE_CHECK(ask.lease != 0 && ask.tokens && !ask.tokens->empty());
  TROUPE_CHECK(ask.need_tokens >= static_cast<int>(ask.tokens->size()));
  TROUPE_CHECK(!leases_.contains(ask.lease));
  if (leases_.size() >= limits::kv_leases_max)
    return refuse(ask.lease, ask.id, errc::no_memory, "the shard holds its most leases");

  holding h;
  h.id = ask.id;
  h.at = cache_.root(ask.salt);
  h.publishing = config_.prefix_reuse;
  // The last token is always computed anew, since the choice of the next one needs its result: it lies in a page of its own.
  if (config_.prefix_reuse)
    h.pages = cache_.find(h.at, *ask.tokens, (ask.tokens->size() - 1) / static_cast<std::size_t>(limits::page_tokens));
  const auto shared = static_cast<std::uint32_t>(h.pages.size());
  const auto fresh = pages_for(ask.need_tokens) - shared;
  if (std::uint64_t{fresh} + ask.headroom_pages > available()) {
    give_back(h);
    return refuse(ask.lease, ask.id, errc::no_memory, "the shard has too few free pages");
  }
  TROUPE_CHECK(make_free(fresh));
  const auto own = take(fresh, h.pages);
  h.pages.insert(h.pages.end(), own.begin(), own.end());

  ++counters_.reservations;
  counters_.asked_tokens += ask.tokens->size();
  counters_.hits += shared > 0;
  counters_.hit_tokens += shared * static_cast<std::uint64_t>(limits::page_tokens);
  pages_reserved answer{config_.index, ask.lease, ask.id, {}, static_cast<int>(shared) * limits::page_tokens, {}};
  answer.pages.reserve(h.pages.size());
  for (const auto& page : h.pages)
    answer.pages.push_back(page.page);
  leases_.emplace(ask.lease, std::move(h));
  answer.report = report();
  return answer;
}

std::variant<pages_grown, pages_refused> kv_shard_memory::grow(const grow_pages& ask) {
  TROUPE_CHECK(ask.max_tokens >= ask.need_tokens);
  const auto found = leases_.find(ask.lease);
  if (found == leases_.end())
    return refuse(ask.lease, ask.id, errc::not_found, "the shard does not know the lease");
  holding& h = found->second;
  const auto have = static_cast<std::uint32_t>(h.pages.size());
  const auto need = pages_for(ask.need_tokens);
  pages_grown answer{config_.index, ask.lease, ask.id, {}, {}};
  if (need > have) {
    const auto wish = std::min(std::max(have + have / 2, need), pages_for(ask.max_tokens));
    const auto extra = std::min(wish - have, available());
    if (extra < need - have)
      return refuse(ask.lease, ask.id, errc::no_memory, "the shard has too few free pages");
    TROUPE_CHECK(make_free(extra));
    for (const auto& page : take(extra, h.pages)) {
      h.pages.push_back(page);
      answer.added.push_back(page.page);
    }
    ++counters_.growths;
  }
  answer.report = report();
  return answer;
}

void kv_shard_memory::publish(const publish_pages& tell) {
  if (const auto found = leases_.find(tell.lease); found != leases_.end())
    publish_to(found->second, tell.position, tell.tokens);
}

pages_released kv_shard_memory::release(const release_pages& tell) {
  if (const auto found = leases_.find(tell.lease); found != leases_.end()) {
    publish_to(found->second, tell.position, tell.tokens);
    give_back(found->second);
    leases_.erase(found);
  }
  return {config_.index, tell.lease, report()};
}

void kv_shard_memory::release_all() {
  for (auto& [lease, h] : leases_)
    give_back(h);
  leases_.clear();
}

void kv_shard_memory::publish_to(holding& h, int position, const std::vector<token_id>& tokens) {
  constexpr auto block_tokens = static_cast<std::size_t>(limits::page_tokens);
  if (!h.publishing || tokens.empty())
    return;
  TROUPE_CHECK(position == static_cast<int>(h.at.depth) * limits::page_tokens);
  TROUPE_CHECK(h.at.depth + pages_for(static_cast<int>(tokens.size())) <= h.pages.size());
  const std::span all(tokens);
  for (std::size_t i = 0; (i + 1) * block_tokens <= all.size() && h.publishing; ++i) {
    const auto own = h.pages[h.at.depth];
    const auto known = cache_.publish(h.at, all.subspan(i * block_tokens).first<block_tokens>(), own);
    if (!known)
      h.publishing = false;
    else if (*known != own)
      h.twins.push_back(*known);
  }
}

// From the end: a page's descendants become idle before it, so that among equals the deepest is evicted first.
void kv_shard_memory::give_back(holding& h) {
  for (const auto& pages : {&h.twins, &h.pages})
    for (auto page = pages->rbegin(); page != pages->rend(); ++page)
      cache_.release(*page);
}

bool kv_shard_memory::make_free(std::uint32_t pages) {
  if (pages > pool_.free_pages())
    cache_.evict(pages - pool_.free_pages());
  return pages <= pool_.free_pages();
}

std::vector<page_handle> kv_shard_memory::take(std::uint32_t pages, const std::vector<page_handle>& behind) {
  auto out = pool_.allocate(pages, behind.empty() ? std::nullopt : std::optional(behind.back().page));
  TROUPE_CHECK(out.has_value());
  counters_.granted_pages += pages;
  for (std::size_t i = 0; i < out->size(); ++i) {
    const bool follows = i > 0 ? (*out)[i].page == (*out)[i - 1].page + 1
                               : !behind.empty() && (*out)[0].page == behind.back().page + 1;
    counters_.granted_runs += !follows;
  }
  return std::move(*out);
}

pages_refused kv_shard_memory::refuse(lease_id lease, request_id id, errc code, std::string why) {
  ++counters_.refusals;
  return {config_.index, lease, id, fail(code, std::move(why)), report()};
}

shard_report kv_shard_memory::report() { return {++serial_, config_.pages, pool_.free_pages(), cache_.idle_pages()}; }

kv_shard_stats kv_shard_memory::stats() const {
  kv_shard_stats s = counters_;
  s.pages = config_.pages;
  s.free = pool_.free_pages();
  s.cached = cache_.idle_pages();
  s.used = s.pages - s.free - s.cached;
  s.leases = static_cast<std::uint32_t>(leases_.size());
  s.published_pages = cache_.stats().published;
  s.evicted_pages = cache_.stats().evicted;
  return s;
}

void kv_shard_memory::check_invariants() const {
  pool_.check_invariants();
  cache_.check_invariants();
  std::vector<std::uint32_t> holders(config_.pages);
  for (const auto& [lease, h] : leases_) {
    TROUPE_CHECK(lease != 0 && h.at.depth <= h.pages.size());
    for (const auto& pages : {&h.pages, &h.twins})
      for (const auto& page : *pages) {
        TROUPE_CHECK(pool_.valid(page));
        ++holders[page.page - config_.first];
      }
    for (const auto& twin : h.twins)
      TROUPE_CHECK(cache_.holds(twin.page));
    for (std::size_t i = h.at.depth; i < h.pages.size(); ++i) // what the lease may still write is its own
      TROUPE_CHECK(!cache_.holds(h.pages[i].page) && pool_.references(h.pages[i]) == 1);
  }
  std::uint32_t free = 0, cached = 0;
  for (std::uint32_t i = 0; i < config_.pages; ++i) {
    const page_id page = config_.first + i;
    TROUPE_CHECK(pool_.references_of(page) == holders[i] + (cache_.holds(page) ? 1 : 0));
    free += pool_.references_of(page) == 0;
    cached += holders[i] == 0 && cache_.holds(page);
  }
  TROUPE_CHECK(free == pool_.free_pages() && cached == cache_.idle_pages());
}

} // namespace troupe
