// What a batcher asks of a shard with tiers: what can be answered at once, and who waits for what.
#include "memory/tiered_shard.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace troupe {

namespace {

constexpr auto block_tokens = static_cast<std::size_t>(limits::page_tokens);

template <class Answer>
void answer(shard_actions& out, Answer what) {
  std::visit([&out](auto& a) { out.emplace_back(std::move(a)); }, what);
}

bool refused_for_room(const pages_refused* no) {
  return no && no->fault.code == errc::no_memory;
}

} // namespace

tiered_shard::tiered_shard(tiered_shard_config config)
    : config_(config.tiers), memory_(config.pages), index_(config.tiers.index),
      predictor_(config.tiers.prefetch_ahead > 0 ? limits::known_conversations_max : 0),
      tiers_(index_.enabled() && config.pages.prefix.reuse) {
  if (!tiers_)
    return;
  if (config_.journal)
    config_.journal->follow(index_);
  entry_of_.resize(config.pages.pages);
  queued_.resize(config.pages.pages);
  prefetched_.resize(config.pages.pages);
  promised_.resize(config.pages.pages);
  memory_.on_entry([this](page_handle page) {
    entry_of_[slot_of(page.page)] = 0;
    if (!queued_[slot_of(page.page)])
      dirty_.push_back(page);
    queued_[slot_of(page.page)] = true;
  });
  memory_.on_removal([this](page_handle gone, page_handle heir) {
    if (heir.generation == 0)
      ++(clean(gone.page) ? counters_.clean_evicted : counters_.lost);
    counters_.prefetch_unused += prefetched_[slot_of(gone.page)];
    prefetched_[slot_of(gone.page)] = false;
    promised_[slot_of(gone.page)] = entry_of_[slot_of(gone.page)] = 0;
  });
}

void tiered_shard::pass(steady_time now) {
  memory_.pass(now);
  index_.expire(now);
}

shard_actions tiered_shard::reserve(const reserve_pages& ask) {
  shard_actions out;
  if (!tiers_) {
    answer(out, memory_.reserve(ask));
    return out;
  }
  begin_turn(ask);
  try_reserve(ask, 0, out);
  pump(out);
  return out;
}

// More of the tokens may lie below than in the device: whole pages, and of those behind them the page that agrees longest.
tiered_shard::below tiered_shard::look_below(std::uint64_t salt, std::span<const token_id> tokens) {
  below out;
  out.at = memory_.position_of(salt, tokens);
  const auto path = index_.find(salt, tokens, tokens.size() / block_tokens);
  if (!path.empty())
    index_.touch(path.back());
  const std::size_t here = out.at.depth;
  if (path.size() > here)
    out.entries.assign(path.begin() + static_cast<std::ptrdiff_t>(here), path.end());
  out.known = here > 0 || !path.empty();
  if (path.size() < here)
    return out;
  const auto behind = tokens.subspan(path.size() * block_tokens);
  const auto rest = behind.first(std::min(behind.size(), block_tokens));
  if (rest.empty())
    return out;
  const auto best = index_.closest(salt, path.empty() ? 0 : path.back(), rest);
  const int in_device = out.entries.empty() ? memory_.agreement(out.at, rest) : 0;
  out.known = out.known || in_device > 0 || best.tokens > 0;
  if (best.tokens > in_device)
    out.entries.push_back(best.id);
  if (best.tokens > 0)
    index_.touch(best.id);
  return out;
}

void tiered_shard::try_reserve(const reserve_pages& ask, int waits, shard_actions& out) {
  const auto tokens = std::span(*ask.tokens).first(ask.tokens->size() - 1); // the last one is computed in any case
  const auto found = look_below(ask.salt, tokens);
  counters_.lookups += waits == 0 && found.known;
  counters_.misses += waits == 0 && !found.entries.empty();
  if (!found.entries.empty() && wait_for_load(ask, waits, found))
    return;
  auto granted = memory_.reserve(ask);
  const auto* yes = std::get_if<pages_reserved>(&granted);
  if (!yes && refused_for_room(std::get_if<pages_refused>(&granted)) && memory_.has_holds()) {
    park(ask, std::max(waits, 1), 0);
    return;
  }
  if (yes)
    note_found(*yes);
  else
    turns_.erase(ask.lease);
  answer(out, std::move(granted));
}

bool tiered_shard::wait_for_load(const reserve_pages& ask, int waits, const below& found) {
  const auto fresh = pages_for(ask.need_tokens) - found.at.depth;
  if (waits >= limits::tier_waits_max || !transfer_ready_ || std::uint64_t{fresh} + ask.headroom_pages > memory_.open_to_new())
    return false;
  if (!steps_passed_ || room_is_awaited()) {
    park(ask, waits + 1, 0);
    return true;
  }
  const auto under_way = loading_.find(found.entries.front());
  const auto load = under_way != loading_.end() ? under_way->second : start_load(found, false);
  ++loads_.at(load).waiting;
  park(ask, waits + 1, load);
  return true;
}

void tiered_shard::note_found(const pages_reserved& got) {
  const auto use = [this](page_id page) {
    counters_.prefetch_used += prefetched_[slot_of(page)];
    prefetched_[slot_of(page)] = false;
  };
  for (std::size_t i = 0; i < static_cast<std::size_t>(got.shared_tokens) / block_tokens; ++i)
    use(got.pages[i]);
  if (got.copy_from)
    use(*got.copy_from);
}

shard_actions tiered_shard::grow(const grow_pages& ask) {
  shard_actions out;
  try_grow(ask, out);
  pump(out);
  return out;
}

void tiered_shard::try_grow(const grow_pages& ask, shard_actions& out) {
  auto grown = memory_.grow(ask);
  if (refused_for_room(std::get_if<pages_refused>(&grown)) && memory_.has_holds())
    return park(ask, 0, 0);
  answer(out, std::move(grown));
}

shard_actions tiered_shard::publish(const publish_pages& tell) {
  shard_actions out;
  memory_.publish(tell);
  pump(out);
  return out;
}

shard_actions tiered_shard::release(const release_pages& tell) {
  shard_actions out;
  if (const auto waits = parked_.find(tell.lease); waits != parked_.end()) {
    const auto ask = std::move(waits->second);
    parked_.erase(waits);
    if (ask.load != 0)
      --loads_.at(ask.load).waiting;
    const auto id = std::visit([](const auto& a) { return a.id; }, ask.what);
    out.emplace_back(pages_refused{config().index, tell.lease, id, fail(errc::cancelled, "released before it was granted"),
                                   memory_.report()});
  }
  end_turn(tell);
  out.emplace_back(memory_.release(tell));
  wake_tails();
  retry(0, out);
  pump(out);
  return out;
}

void tiered_shard::taken() {
  parked_.clear();
  turns_.clear();
  for (auto& [number, load] : loads_)
    load.waiting = 0;
  memory_.release_all();
  wake_tails();
  steps_passed_ = false;
}

shard_actions tiered_shard::steps_passed() {
  shard_actions out;
  steps_passed_ = true;
  retry(0, out);
  pump(out);
  return out;
}

void tiered_shard::park(std::variant<reserve_pages, grow_pages> ask, int waits, load_number load) {
  const auto lease = std::visit([](const auto& a) { return a.lease; }, ask);
  TROUPE_CHECK(parked_.emplace(lease, parked_ask{std::move(ask), waits, load}).second);
}

// Those that wait for `load`; 0: for room or for steps.
void tiered_shard::retry(load_number load, shard_actions& out) {
  std::vector<parked_ask> ready;
  for (auto at = parked_.begin(); at != parked_.end();)
    if (at->second.load == load) {
      ready.push_back(std::move(at->second));
      at = parked_.erase(at);
    } else {
      ++at;
    }
  for (auto& ask : ready)
    if (const auto* reservation = std::get_if<reserve_pages>(&ask.what))
      try_reserve(*reservation, ask.waits, out);
    else
      try_grow(std::get<grow_pages>(ask.what), out);
}

// Then nothing new is held for transfers, so that the room comes.
bool tiered_shard::room_is_awaited() const {
  return std::any_of(parked_.begin(), parked_.end(), [](const auto& p) { return p.second.load == 0; });
}

// -- what is likely to be asked for next --

void tiered_shard::begin_turn(const reserve_pages& ask) {
  if (config_.prefetch_ahead == 0)
    return;
  const auto conversation = predictor_.begins(ask.salt, *ask.tokens);
  turns_[ask.lease] = conversation;
  const auto next = predictor_.next(conversation, static_cast<std::size_t>(config_.prefetch_ahead));
  wanted_.assign(next.begin(), next.end());
  ++prediction_;
}

void tiered_shard::end_turn(const release_pages& tell) {
  const auto turn = turns_.find(tell.lease);
  if (turn == turns_.end())
    return;
  if (const auto before = memory_.published_by(tell.lease); before && !tell.tokens.empty())
    predictor_.ends(turn->second, end_behind(*before, tell.tokens));
  turns_.erase(turn);
}

tier_stats tiered_shard::tiers() const {
  tier_stats s = counters_;
  s.index = index_.stats();
  return s;
}

void tiered_shard::check_invariants() const {
  memory_.check_invariants();
  if (!tiers_)
    return;
  index_.check_invariants();
  predictor_.check_invariants();
  std::map<load_number, int> waiting;
  for (const auto& [lease, ask] : parked_) {
    TROUPE_CHECK(ask.load == 0 || loads_.contains(ask.load));
    ++waiting[ask.load];
  }
  for (const auto& [number, load] : loads_) {
    TROUPE_CHECK(load.waiting == (waiting.contains(number) ? waiting.at(number) : 0));
    TROUPE_CHECK(load.next <= load.entries.size());
  }
  for (const auto& [entry, number] : loading_)
    TROUPE_CHECK(loads_.contains(number));
  TROUPE_CHECK(memory_.stats().held == loads_.size() + (writing_ ? writing_->pages.size() : 0));
  // What waits for room waits for a transfer that is under way, or for steps.
  TROUPE_CHECK(!room_is_awaited() || memory_.stats().held > 0 || !steps_passed_);
}

} // namespace troupe
