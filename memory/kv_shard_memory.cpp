#include "memory/kv_shard_memory.hpp"

#include <algorithm>
#include <string>

#include "base/check.hpp"

namespace troupe {

kv_shard_memory::kv_shard_memory(kv_shard_config config)
    : config_(config), pool_(config.first, config.pages), cache_(pool_, &hash_block, config.prefix),
      states_(config.prefix.reuse ? config.prefix.prompt_states : 0) {
  cache_.on_removal([this](page_handle gone, page_handle heir) {
    states_.move(gone, heir);
    if (hear_removal_)
      hear_removal_(gone, heir);
  });
}

std::variant<pages_reserved, pages_refused> kv_shard_memory::reserve(const reserve_pages& ask) {
  TROUPE_CHECK(ask.lease != 0 && ask.tokens && !ask.tokens->empty());
  TROUPE_CHECK(ask.need_tokens >= static_cast<int>(ask.tokens->size()));
  TROUPE_CHECK(!leases_.contains(ask.lease));
  if (leases_.size() >= limits::kv_leases_max)
    return refuse(ask.lease, ask.id, errc::no_memory, "the shard holds its most leases");

  holding h;
  h.id = ask.id;
  h.at = cache_.root(ask.salt);
  h.publishing = config_.prefix.reuse;
  // What may still be written, the page of the last token included, lies in pages of its own: the end is copied, not shared.
  if (config_.prefix.reuse)
    h.pages = cache_.find(h.at, *ask.tokens, (ask.tokens->size() - 1) / static_cast<std::size_t>(limits::page_tokens));
  const auto shared = static_cast<std::uint32_t>(h.pages.size());
  const auto fresh = pages_for(ask.need_tokens) - shared;
  auto rest = find_rest(h, ask);
  if (rest.tokens > 0) {
    cache_.retain(rest.source);
    h.source = rest.source;
    if (std::uint64_t{fresh} + ask.headroom_pages > open_to_new()) { // better without it than not at all
      let_source_go(h);
      rest = {};
    }
  }
  if (std::uint64_t{fresh} + ask.headroom_pages > open_to_new()) {
    give_back(h);
    return refuse(ask.lease, ask.id, errc::no_memory, "the shard has too few free pages");
  }
  TROUPE_CHECK(make_free(fresh));
  const auto own = take(fresh, h.pages);
  h.pages.insert(h.pages.end(), own.begin(), own.end());

  pages_reserved answer;
  answer.shard = config_.index;
  answer.lease = ask.lease;
  answer.id = ask.id;
  answer.shared_tokens = static_cast<int>(shared) * limits::page_tokens;
  answer.cached_tokens = answer.shared_tokens + rest.tokens;
  if (rest.tokens > 0)
    answer.copy_from = rest.source.page;
  ++counters_.reservations;
  counters_.asked_tokens += ask.tokens->size();
  counters_.hits += answer.cached_tokens > 0;
  counters_.hit_tokens += static_cast<std::uint64_t>(answer.cached_tokens);
  counters_.copied_tokens += static_cast<std::uint64_t>(rest.tokens);
  counters_.state_hits += rest.state != nullptr;
  answer.state = std::move(rest.state);
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

pages_released kv_shard_memory::release(const release_pages& tell) {
  if (const auto found = leases_.find(tell.lease); found != leases_.end()) {
    let_source_go(found->second);
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

// From the end: a page's descendants become idle before it, so that among equals the deepest is evicted first.
void kv_shard_memory::give_back(holding& h) {
  let_source_go(h);
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

// Pinned pages give way to those that run, and to a request that has the shard to itself: that one would wait in vain.
std::uint32_t kv_shard_memory::open_to_new() const noexcept {
  return available() - (leases_.empty() ? 0 : cache_.idle_pinned_pages());
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
  s.pinned = cache_.pinned_pages();
  s.leases = static_cast<std::uint32_t>(leases_.size());
  s.held = static_cast<std::uint32_t>(holds_.size());
  s.states = static_cast<std::uint32_t>(states_.size());
  s.published_pages = cache_.stats().published;
  s.evicted_pages = cache_.stats().evicted;
  s.expired_pages = cache_.stats().expired;
  s.covered_pages = cache_.stats().covered;
  return s;
}

} // namespace troupe
