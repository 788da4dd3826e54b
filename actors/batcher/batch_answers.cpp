// What follows from the shards' answers, their losses and their returns.
#include <algorithm>

#include "actors/batcher/batch_schedule.hpp"
#include "base/check.hpp"
#include "config/limits.hpp"

namespace troupe {

void batch_schedule::note(std::uint32_t shard, const shard_report& report) {
  if (report.serial > shards_[shard].report.serial)
    shards_[shard].report = report;
}

std::optional<batch_schedule::page_ask> batch_schedule::take_ask(std::uint32_t shard, lease_id lease,
                                                                 const shard_report& report) {
  TROUPE_CHECK(shard < shards_.size());
  auto& asks = shards_[shard].asks;
  const auto found = asks.find(lease);
  if (found == asks.end())
    return std::nullopt; // asked of a former incarnation
  const auto ask = found->second;
  asks.erase(found);
  note(shard, report);
  return ask;
}

batch_sequence* batch_schedule::holder(lease_id lease, std::uint32_t shard) {
  const auto found = leases_.find(lease);
  if (found == leases_.end() || found->second->shard != shard) {
    ++counters_.late_answers;
    return nullptr;
  }
  return found->second;
}

bool batch_schedule::holds_nothing(std::uint32_t shard) const {
  const shard_view& view = shards_[shard];
  return view.asks.empty() && view.releases.empty() &&
         std::none_of(running_.begin(), running_.end(), [&](const auto* s) { return s->lease != 0 && s->shard == shard; });
}

batch_actions batch_schedule::answered(const pages_reserved& answer) {
  batch_actions out;
  take_ask(answer.shard, answer.lease, answer.report);
  batch_sequence* s = holder(answer.lease, answer.shard);
  if (!s || s->state != sequence_state::reserving) {
    if (!s)
      send_release({answer.shard, answer.lease, answer.id, 0, {}}, out);
    advance(out);
    return out;
  }
  s->pages = std::make_shared<const page_table>(answer.pages);
  s->state = sequence_state::running;
  s->computed = answer.cached_tokens;
  s->published = answer.shared_tokens;
  s->lease_pages = static_cast<int>(answer.pages.size());
  s->ring_tail = s->request.window.sink_pages;
  if (answer.copy_from)
    s->copy = page_copy{*answer.copy_from, s->pages->at(static_cast<std::size_t>(s->published / limits::page_tokens))};
  s->kept_state = answer.state;
  s->reservation_failures = 0;
  affinity_.correct(s->beginnings, answer.shared_tokens, answer.shard);
  TROUPE_CHECK(s->published % limits::page_tokens == 0 && s->published < s->length());
  TROUPE_CHECK((has_room(*s) || s->budgeted()) && s->computed < s->length() + (s->kept_state ? 1 : 0));
  if (s->cached_tokens < 0) {
    s->cached_tokens = std::min(answer.cached_tokens, s->request.prompt_length);
    counters_.prompt_tokens += static_cast<std::uint64_t>(s->request.prompt_length);
    counters_.cached_tokens += static_cast<std::uint64_t>(s->cached_tokens);
  }
  advance(out);
  return out;
}

batch_actions batch_schedule::answered(const pages_grown& answer) {
  batch_actions out;
  const auto ask = take_ask(answer.shard, answer.lease, answer.report);
  batch_sequence* s = holder(answer.lease, answer.shard);
  if (ask && s && s->growing) {
    auto pages = std::make_shared<page_table>();
    pages->reserve(s->pages->size() + answer.added.size());
    *pages = *s->pages;
    for (; s->replacing > 0; --s->replacing, ++s->ring_tail)
      (*pages)[static_cast<std::size_t>(s->ring_tail)] = no_page;
    s->lease_pages += static_cast<int>(answer.added.size());
    pages->insert(pages->end(), answer.added.begin(), answer.added.end());
    s->pages = std::move(pages);
    s->growing = s->grow_refused = false;
  }
  advance(out);
  return out;
}

batch_actions batch_schedule::answered(const pages_refused& answer) {
  batch_actions out;
  const auto ask = take_ask(answer.shard, answer.lease, answer.report);
  batch_sequence* s = holder(answer.lease, answer.shard);
  if (!ask || !s) {
    advance(out);
    return out;
  }
  shard_view& view = shards_[answer.shard];
  if (!ask->reservation) {
    s->growing = false;
    s->grow_refused = true;
    s->own_pages = s->own_pages || s->replacing > 0 || s->shares_in_vain();
    s->replacing = 0;
    if (answer.fault.code == errc::not_found) { // the shard forgot the lease: the pages may be another's by now
      leases_.erase(s->lease);
      s->lease = 0;
      ++view.changes;
      if (s->in_step)
        s->pages_lost = true;
      else
        requeue(*s, out);
    }
    advance(out);
    return out;
  }
  s->refused_at[answer.shard] = s->asked_at_change + 1;
  if (answer.fault.code == errc::no_memory) {
    leases_.erase(s->lease);
    s->lease = 0; // nothing was granted
    s->reservation_failures = 0;
    requeue(*s, out);
    // With the whole shard to itself it was refused all the same.
    if (holds_nothing(answer.shard) && s->asked_at_change == view.changes)
      fail_request(*s, answer.fault, out);
  } else {
    requeue(*s, out); // releases, since the shard may have granted it
    if (++s->reservation_failures >= limits::reservation_failures_max)
      fail_request(*s, fail(errc::unavailable, "the KV memory does not answer: " + answer.fault.message), out);
  }
  advance(out);
  return out;
}

batch_actions batch_schedule::answered(const pages_released& answer) {
  TROUPE_CHECK(answer.shard < shards_.size());
  batch_actions out;
  shard_view& view = shards_[answer.shard];
  const auto found = view.releases.find(answer.lease);
  if (found == view.releases.end()) {
    ++counters_.late_answers;
    return out;
  }
  if (--found->second == 0)
    view.releases.erase(found);
  ++view.changes;
  note(answer.shard, answer.report);
  advance(out);
  return out;
}

batch_actions batch_schedule::shard_ready(std::uint32_t shard, shard_report report) {
  TROUPE_CHECK(shard < shards_.size());
  batch_actions out = shards_[shard].ready ? shard_lost(shard) : batch_actions{};
  shard_view& view = shards_[shard];
  view.ready = true;
  view.report = report;
  ++view.changes;
  advance(out);
  return out;
}

// A step in flight still reads and writes the lost pages; its results are good, and the next step, the first that can write
// what the shard's successor grants, starts after it.
batch_actions batch_schedule::shard_lost(std::uint32_t shard) {
  TROUPE_CHECK(shard < shards_.size());
  batch_actions out;
  shard_view& view = shards_[shard];
  if (!view.ready)
    return out;
  view.ready = false;
  view.report = {};
  view.asks.clear();
  view.releases.clear();
  ++view.changes;
  affinity_.forget(shard);
  const auto order = running_;
  for (batch_sequence* s : order) {
    if (s->lease == 0 || s->shard != shard)
      continue;
    leases_.erase(s->lease);
    s->lease = 0;
    counters_.requeued += !s->ended;
    if (s->in_step)
      s->pages_lost = true;
    else
      requeue(*s, out);
  }
  advance(out);
  return out;
}

std::size_t batch_schedule::releases_outstanding() const noexcept {
  std::size_t n = 0;
  for (const auto& view : shards_)
    for (const auto& [lease, times] : view.releases)
      n += times;
  return n;
}

} // namespace troupe
