// Where sequences get their pages, and whose are taken: admission, growth, pre-emption, release.
#include <algorithm>

#include "actors/batcher/batch_schedule.hpp"
#include "base/check.hpp"
#include "base/random.hpp"
#include "config/limits.hpp"
#include "memory/kv_shard_memory.hpp"

namespace troupe {

namespace {

// How much waiting weighs against length and priority (see the header). The length's part is capped below a level of
// priority, so that of two requests that arrive together the one of higher priority is first, whatever its length.
constexpr double tokens_a_second = 512;
constexpr double length_seconds_max = 30;
constexpr double priority_seconds = 60;
// A known beginning of more than this, about a step's work, is never computed a second time to spread chats.
constexpr std::uint32_t spread_pages_max = 16;

// Equal for requests that are to meet: those whose first half, in whole pages, is the same.
std::uint64_t affinity_of(const batch_request& r) {
  if (r.affinity)
    return mix64(*r.affinity);
  constexpr auto page = static_cast<std::size_t>(limits::page_tokens);
  const auto n = std::min(r.tokens->size(), std::max(page, r.tokens->size() / (2 * page) * page));
  std::uint64_t h = mix64(r.salt);
  for (std::size_t i = 0; i < n; ++i)
    h = mix64(h ^ static_cast<std::uint32_t>((*r.tokens)[i]));
  return h;
}

int whole_pages(int tokens) { return tokens / limits::page_tokens * limits::page_tokens; }

} // namespace

double batch_schedule::rank(const batch_sequence& s) const {
  return s.arrival + std::min(s.remaining() / tokens_a_second, length_seconds_max) - priority_seconds * s.request.priority;
}

int batch_schedule::length_max(const batch_sequence& s) const {
  const std::int64_t asked = std::int64_t{s.request.prompt_length} + s.request.max_new_tokens;
  if (s.keeps_private())
    return static_cast<int>(asked);
  // The last token is chosen from those before it and never computed itself.
  const auto held = std::int64_t{pages_max(s.request)} * limits::page_tokens + 1;
  return static_cast<int>(std::min({asked, std::int64_t{s.request.context_tokens}, held}));
}

int batch_schedule::computed_max(const batch_sequence& s) const {
  return s.request.max_new_tokens == 0 ? s.length() : std::max(s.length(), length_max(s) - 1);
}

int batch_schedule::held_max(const batch_sequence& s) const {
  return std::min(computed_max(s), pages_max(s.request) * limits::page_tokens);
}

int batch_schedule::first_need(const batch_sequence& s) const {
  return static_cast<int>(
      std::min<std::int64_t>(held_max(s), std::int64_t{s.length()} + config_.first_reservation_tokens));
}

// -- admission --

// Strictly by rank: where the first has to wait for memory, so do those behind it, or a long request would starve.
void batch_schedule::admit(batch_actions& out) {
  std::size_t reserving = 0;
  for (const auto& view : shards_)
    for (const auto& [lease, ask] : view.asks)
      reserving += ask.reservation;
  while (!waiting_.empty() && running_.size() < static_cast<std::size_t>(config_.running_max) &&
         reserving < static_cast<std::size_t>(limits::reservations_outstanding_max)) {
    batch_sequence& s = **std::min_element(waiting_.begin(), waiting_.end(), [this](const auto* a, const auto* b) {
      return std::pair(rank(*a), a->serial) < std::pair(rank(*b), b->serial);
    });
    const auto shard = choose_shard(s);
    if (!shard)
      return;
    const auto need = first_need(s);
    reserve_pages ask{*shard, next_lease_++, s.request.id, sought(s), s.request.salt, need, headroom(*shard),
                      config_.prompt_states && !s.keeps_private() && s.request.max_new_tokens > 0};
    std::erase(waiting_, &s);
    running_.push_back(&s);
    s.state = sequence_state::reserving;
    s.shard = *shard;
    s.lease = ask.lease;
    s.asked_at_change = shards_[*shard].changes;
    leases_.emplace(ask.lease, &s);
    shards_[*shard].asks.emplace(ask.lease, page_ask{pages_for(need), true});
    ++reserving;
    out.emplace_back(std::move(ask));
  }
}

// The shard where the longest part of the same beginning lies, or where requests that begin so meet; only it knows exactly
// whether the request fits, so it is asked first. Once it has refused, the one with most pages to spare. A request that
// knows little of its prompt anywhere is the first of a chat, which will stay where it began: it goes where most pages are free.
std::optional<std::uint32_t> batch_schedule::choose_shard(batch_sequence& s) {
  if (!s.affinity)
    s.affinity = affinity_of(s.request);
  const auto key = *s.affinity;
  if (s.beginnings.empty() && !s.request.affinity)
    s.beginnings = beginnings_of(s.request.salt, *s.request.tokens);
  const auto need = static_cast<std::int64_t>(pages_for(first_need(s)));
  std::optional<std::uint32_t> affine, roomiest, freest;
  std::uint32_t known = 0;
  const auto depths = affinity_.known_pages(s.beginnings);
  for (std::uint32_t i = 0; i < shards_.size(); ++i) {
    if (!shards_[i].ready)
      continue;
    const auto depth = depths[i];
    // Highest random weight among equals: a shard's loss moves only its own requests.
    if (!affine || depth > known || (depth == known && random_at(key, i) > random_at(key, *affine))) {
      affine = i;
      known = depth;
    }
    if (may_ask(s, i) && (!roomiest || spare_pages(i) > spare_pages(*roomiest)))
      roomiest = i;
    if (may_ask(s, i) && (!freest || free_pages(i) > free_pages(*freest)))
      freest = i;
  }
  if (!s.request.affinity && known <= std::min(pages_for(s.length()) / 2, spread_pages_max)) {
    for (const auto* r : running_)
      if (r->affinity == key && may_ask(s, r->shard) && shards_[r->shard].ready)
        return r->shard;
    if (affine && freest && free_pages(*freest) > free_pages(*affine))
      return freest;
  }
  if (!affine || !may_ask(s, *affine))
    return roomiest;
  if (!roomiest || *roomiest == *affine || known == 0 || free_pages(*roomiest) < need || config_.evicted_come_back)
    return affine;
  // What others cached there would go for it. Once that has cost as much as the beginning is worth, it is computed elsewhere,
  // as far as it is not known there.
  const auto evicted = need - known - std::max<std::int64_t>(free_pages(*affine), 0);
  if (evicted <= 0 || !affinity_.spills(*affine, static_cast<std::uint32_t>(evicted), known - depths[*roomiest]))
    return affine;
  ++counters_.spilled;
  return roomiest;
}

// Those that run come first, and a refusal stands until something changed.
bool batch_schedule::may_ask(const batch_sequence& s, std::uint32_t shard) const {
  if (s.refused_at[shard] == shards_[shard].changes + 1)
    return false;
  return std::none_of(running_.begin(), running_.end(), [&](const auto* r) { return r->shard == shard && r->grow_refused; });
}

// Pages that the sequences that run there may soon ask for. Those that only ask for a reservation don't count: were each to
// keep room for the others, an empty shard could refuse all.
std::uint32_t batch_schedule::headroom(std::uint32_t shard) const {
  std::uint32_t pages = 0;
  for (const auto* s : running_) {
    if (s->state != sequence_state::running || s->lease == 0 || s->shard != shard || s->ended)
      continue;
    const auto soon =
        std::min<std::int64_t>(held_max(*s), std::int64_t{s->length()} - s->evicted + config_.admission_lookahead_tokens);
    const auto ask = shards_[shard].asks.find(s->lease);
    const auto have =
        static_cast<std::uint32_t>(s->pages->size()) + (ask == shards_[shard].asks.end() ? 0 : ask->second.pages);
    const auto want = pages_for(static_cast<int>(soon));
    pages += want > have ? want - have : 0;
  }
  return pages;
}

// As last reported, less what has been asked for since; may be below zero.
std::int64_t batch_schedule::spare_pages(std::uint32_t shard) const {
  std::int64_t spare = shards_[shard].report.available();
  for (const auto& [lease, ask] : shards_[shard].asks)
    spare -= ask.pages;
  return spare;
}

// Of those that hold nothing; may be below zero.
std::int64_t batch_schedule::free_pages(std::uint32_t shard) const {
  return spare_pages(shard) - shards_[shard].report.cached;
}

// -- growth and pre-emption --

void batch_schedule::grow_running(batch_actions& out) {
  const auto order = running_; // pre-emption changes it
  for (batch_sequence* each : order) {
    batch_sequence& s = *each;
    if (s.state != sequence_state::running || s.ended || s.growing || s.preempt || s.pages_lost)
      continue;
    if (s.grow_refused && s.asked_at_change == shards_[s.shard].changes) {
      if (!has_room(s))
        make_room(s, out);
      continue;
    }
    const int room = s.capacity();
    const int must = room_wanted(s);
    // A page ahead, so that decode need not wait.
    const int want = std::max(std::min(held_max(s), s.length() - s.evicted + limits::page_tokens), s.budgeted() ? must : 0);
    if (room < want) {
      const auto pages = pages_for(room < must ? std::min(must, want) : want) - static_cast<std::uint32_t>(s.pages->size());
      const int held = s.lease_pages * limits::page_tokens;
      const int need = held + static_cast<int>(pages) * limits::page_tokens;
      ask_growth(s, {s.shard, s.lease, s.request.id, need, std::max(need, held_max(s))}, pages, out);
    } else if (s.windowed()) {
      turn_ring(s, out);
    }
  }
}

void batch_schedule::ask_growth(batch_sequence& s, grow_pages ask, std::uint32_t pages, batch_actions& out) {
  shard_view& view = shards_[s.shard];
  s.growing = true;
  s.asked_at_change = view.changes;
  view.asks.emplace(s.lease, page_ask{pages, false});
  out.emplace_back(std::move(ask));
}

// `stuck` cannot take another token: the youngest of the lowest priority gives its pages up, once what is under way on that
// shard has not helped.
void batch_schedule::make_room(batch_sequence& stuck, batch_actions& out) {
  const shard_view& view = shards_[stuck.shard];
  if (!view.releases.empty() || !view.asks.empty())
    return;
  batch_sequence* victim = nullptr;
  for (batch_sequence* s : running_) {
    if (s->lease == 0 || s->shard != stuck.shard)
      continue;
    if (s->ended || s->preempt)
      return; // its pages come back with the step in flight
    if (!victim || std::pair(s->request.priority, ~s->serial) < std::pair(victim->request.priority, ~victim->serial))
      victim = s;
  }
  TROUPE_CHECK(victim != nullptr);
  ++counters_.preemptions;
  if (victim->in_step)
    victim->preempt = true;
  else
    requeue(*victim, out);
}

// Back to the queue with all its tokens and none of its pages.
void batch_schedule::requeue(batch_sequence& s, batch_actions& out) {
  TROUPE_CHECK(!s.in_step && !s.ended && s.state != sequence_state::waiting);
  release(s, out);
  if (!s.added.empty()) {
    s.base = std::make_shared<const std::vector<token_id>>(s.slice(0, s.length()));
    s.added.clear();
  }
  s.state = sequence_state::waiting;
  s.drop_pages();
  std::erase(running_, &s);
  waiting_.push_back(&s);
}

// What is computed is good whatever happened since, so it is published: whoever comes with the same tokens finds it.
void batch_schedule::release(batch_sequence& s, batch_actions& out) {
  if (s.lease == 0)
    return;
  release_pages message{s.shard, s.lease, s.request.id, s.published, {}};
  if (s.state == sequence_state::running && !s.turned() && s.evicted == 0)
    message.tokens = s.slice(s.published, std::max(s.published, shareable(s, s.in_pages())));
  affinity_.learn(s.beginnings, s.published, s.published + static_cast<int>(message.tokens.size()), s.shard);
  leases_.erase(s.lease);
  s.lease = 0;
  send_release(std::move(message), out);
}

void batch_schedule::send_release(release_pages message, batch_actions& out) {
  shard_view& view = shards_[message.shard];
  if (!view.ready)
    return;
  ++view.releases[message.lease];
  out.emplace_back(std::move(message));
}

// Whole pages as they are filled; at the prompt's end the page in part full, too.
void batch_schedule::publish(batch_sequence& s, prompt_state_ptr state, batch_actions& out) {
  const bool at_end = s.computed == s.length();
  const int end = s.keeps_private() ? s.published : at_end ? s.computed : whole_pages(s.computed);
  if (end <= s.published && !s.copied)
    return;
  publish_pages told{s.shard, s.lease, s.request.id, s.published, s.slice(s.published, std::max(end, s.published)), s.copied};
  told.pin = at_end && s.request.pin;
  told.state = std::move(state);
  affinity_.learn(s.beginnings, s.published, whole_pages(end), s.shard);
  s.copied = false;
  s.published = std::max(s.published, whole_pages(end));
  out.emplace_back(std::move(told));
}

} // namespace troupe
