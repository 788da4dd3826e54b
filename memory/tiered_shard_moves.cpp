// The transfers of a shard: loads for those that wait, prefetches, and copies down of what was published.
#include <algorithm>

#include "base/check.hpp"
#include "memory/tiered_shard.hpp"

namespace troupe {

tiered_shard::load_number tiered_shard::start_load(below found, bool prefetch) {
  const auto number = next_load_++;
  page_load& load = loads_[number];
  load.prefetch = prefetch;
  load.hold = memory_.hold(found.at.last);
  load.at = found.at;
  load.entries = std::move(found.entries);
  for (const auto entry : load.entries)
    loading_.emplace(entry, number);
  return number;
}

// Called after every input: whatever can be under way is. A load's end may start others.
void tiered_shard::pump(shard_actions& out) {
  if (!tiers_ || !transfer_ready_ || !steps_passed_)
    return;
  start_prefetch();
  const auto stands = [](const auto& l) { return l.second.under_way.empty(); };
  for (auto at = loads_.begin(); (at = std::find_if(at, loads_.end(), stands)) != loads_.end();)
    at = go_on(at->first, out) ? std::next(at) : loads_.begin();
  start_writes(out);
}

// Asks for the load's next pages; false: there are none, and it has ended.
bool tiered_shard::go_on(load_number number, shard_actions& out) {
  page_load& load = loads_.at(number);
  const bool waited_for = load.waiting > 0;
  const bool wanted = waited_for || (load.prefetch && !room_is_awaited());
  const auto most = waited_for ? limits::tier_load_pages_max : limits::tier_prefetch_pages_max;
  const auto may_go = [this](page_id page, bool pinned) {
    return !pinned && clean(page) && promised_[slot_of(page)] != prediction_;
  };
  move_pages message{config().index, next_message_, {}};
  for (; wanted && load.next < load.entries.size() && load.under_way.size() < most; ++load.next) {
    const auto entry = load.entries[load.next];
    if (!index_.contains(entry) || !index_.view(entry).stored)
      break; // nor is what lies behind it
    const auto page = memory_.hold_fresh(load.hold, waited_for ? prefix_cache::may_go_fn() : may_go);
    if (!page)
      break;
    const auto view = index_.view(entry);
    const auto reading = index_.read(entry);
    load.under_way.push_back({entry, reading, *page, {view.tokens.begin(), view.tokens.end()}});
    message.moves.push_back({move_way::up, page->page, view.name, reading.slots, reading.from});
  }
  if (load.under_way.empty()) {
    end_load(number, out);
    return false;
  }
  load.number = next_message_++;
  out.emplace_back(std::move(message));
  return true;
}

shard_actions tiered_shard::moved(const pages_moved& news) {
  shard_actions out;
  if (writing_ && writing_->number == news.number) {
    end_writes(news);
    retry(0, out);
  } else {
    const auto load = std::find_if(loads_.begin(), loads_.end(), [&](const auto& l) {
      return !l.second.under_way.empty() && l.second.number == news.number;
    });
    if (load != loads_.end())
      take_loaded(load->second, news);
  }
  pump(out);
  return out;
}

// What came becomes part of the prefix tree, up to the first page that did not.
void tiered_shard::take_loaded(page_load& load, const pages_moved& news) {
  TROUPE_CHECK(news.moves.size() == load.under_way.size());
  const auto moves = std::move(load.under_way);
  load.under_way.clear();
  bool whole = true;
  for (std::size_t i = 0; i < moves.size(); ++i) {
    const auto& move = moves[i];
    const auto& how = news.moves[i];
    counters_.damaged += how.end == move_end::damaged;
    counters_.failed += how.end == move_end::failed;
    index_.was_read(move.entry, move.reading, how);
    whole = whole && how.end == move_end::done;
    if (!whole) {
      memory_.drop_fresh(load.hold, move.page);
      continue;
    }
    const auto node = memory_.adopt(load.hold, load.at, move.tokens, move.page);
    if (!node) {
      whole = false;
      continue;
    }
    ++counters_.pages_up[index_of(move.reading.from)];
    const bool unasked = load.waiting == 0;
    counters_.prefetched += unasked;
    prefetched_[slot_of(node->page)] = unasked;
    if (unasked)
      promised_[slot_of(node->page)] = prediction_;
    if (index_.contains(move.entry) && memory_.node(node->page)->tokens.size() == move.tokens.size())
      entry_of_[slot_of(node->page)] = move.entry;
  }
  if (!whole)
    load.next = load.entries.size();
}

void tiered_shard::end_load(load_number number, shard_actions& out) {
  const auto hold = loads_.at(number).hold;
  std::erase_if(loading_, [number](const auto& entry) { return entry.second == number; });
  loads_.erase(number);
  retry(number, out); // while the pages are held
  memory_.let_go(hold);
  retry(0, out);
}

void tiered_shard::start_prefetch() {
  if (!parked_.empty() || std::any_of(loads_.begin(), loads_.end(), [](const auto& l) { return l.second.prefetch; }))
    return;
  while (!wanted_.empty()) {
    const auto end = predictor_.last_end(wanted_.front());
    wanted_.pop_front();
    if (!end)
      continue;
    auto deepest = index_.named(end->all);
    if (deepest == 0)
      deepest = index_.named(end->pages);
    if (deepest == 0)
      continue;
    std::vector<token_id> tokens;
    for (const auto entry : index_.path(deepest)) {
      const auto held = index_.view(entry).tokens;
      tokens.insert(tokens.end(), held.begin(), held.end());
    }
    auto found = look_below(index_.view(deepest).salt, tokens);
    if (found.entries.empty()) { // all is here: it is to stay
      const auto rest = std::span(tokens).subspan(std::min(tokens.size(), found.at.depth * std::size_t{limits::page_tokens}));
      promise(found.at, rest);
    } else if (!loading_.contains(found.entries.front())) {
      start_load(std::move(found), true);
      return;
    }
  }
}

void tiered_shard::promise(const prefix_position& at, std::span<const token_id> rest) {
  for (const auto& page : memory_.touch(at, rest))
    promised_[slot_of(page.page)] = prediction_;
}

shard_actions tiered_shard::hint(std::uint64_t salt, std::span<const token_id> tokens) {
  shard_actions out;
  if (!tiers_ || !transfer_ready_ || !steps_passed_ || !parked_.empty())
    return out;
  const auto prefetches = std::count_if(loads_.begin(), loads_.end(), [](const auto& l) { return l.second.prefetch; });
  auto found = look_below(salt, tokens);
  if (prefetches < limits::prefetches_max && !found.entries.empty() && !loading_.contains(found.entries.front()))
    start_load(std::move(found), true);
  pump(out);
  return out;
}

// -- down --

bool tiered_shard::clean(page_id page) const {
  const auto entry = entry_of_[slot_of(page)];
  return entry != 0 && index_.contains(entry) && index_.view(entry).stored;
}

// Tails whose holder is done with them.
void tiered_shard::wake_tails() {
  std::erase_if(tails_, [this](page_handle tail) {
    const auto node = memory_.node(tail.page);
    const bool waits = node && node->page == tail && !node->idle;
    if (!waits)
      dirty_.push_back(tail);
    return !waits;
  });
}

void tiered_shard::start_writes(shard_actions& out) {
  if (writing_ || room_is_awaited())
    return;
  page_write batch;
  move_pages message{config().index, next_message_, {}};
  while (!dirty_.empty() && batch.pages.size() < limits::tier_write_pages_max) {
    const auto page = dirty_.front();
    dirty_.pop_front();
    const auto node = memory_.node(page.page);
    const bool there = node && node->page == page;
    if (there && node->tokens.size() < static_cast<std::size_t>(limits::page_tokens) && !node->idle) {
      tails_.push_back(page);
      continue;
    }
    if (there && !add_write(page, batch, message)) {
      dirty_.push_front(page);
      break;
    }
    queued_[slot_of(page.page)] = false;
  }
  if (batch.pages.empty())
    return;
  batch.number = next_message_++;
  writing_ = std::move(batch);
  out.emplace_back(std::move(message));
}

// The page and what above it is not clean, from above; false: the batch has no room for all.
bool tiered_shard::add_write(page_handle page, page_write& batch, move_pages& message) {
  std::vector<prefix_cache::node_view> chain;
  tier_entry_id parent = 0;
  for (auto up = page; up.generation != 0;) {
    const auto node = *memory_.node(up.page);
    if (const auto entry = entry_of_[slot_of(up.page)]; entry != 0 && index_.contains(entry)) { // clean, or on its way
      parent = entry;
      break;
    }
    chain.push_back(node);
    up = node.parent;
  }
  for (auto node = chain.rbegin(); node != chain.rend(); ++node) {
    if (batch.pages.size() == limits::tier_write_pages_max)
      return false;
    const auto before = parent == 0 ? hash_salt(node->salt) : index_.view(parent).name;
    const auto name = hash_tokens(before, node->tokens);
    const auto added = index_.add(node->salt, parent, node->tokens, name);
    if (added.id == 0)
      return true; // no room below: it stays here as long as it can
    entry_of_[slot_of(node->page.page)] = parent = added.id;
    if (!added.fresh)
      continue;
    batch.pages.push_back({added.id, node->page, memory_.hold(node->page)});
    message.moves.push_back({move_way::down, node->page.page, name, index_.view(added.id).slots, {}});
  }
  return true;
}

void tiered_shard::end_writes(const pages_moved& news) {
  const auto batch = std::move(*writing_);
  writing_.reset();
  TROUPE_CHECK(news.moves.size() == batch.pages.size());
  for (std::size_t i = 0; i < batch.pages.size(); ++i) {
    const auto& page = batch.pages[i];
    const auto& how = news.moves[i];
    counters_.pages_down += how.holds[0] || how.holds[1];
    counters_.failed += how.end == move_end::failed;
    index_.written(page.entry, how.holds);
    memory_.let_go(page.hold);
  }
}

// -- the transfer stream's life --

shard_actions tiered_shard::transfer_ready() {
  shard_actions out;
  transfer_ready_ = tiers_;
  pump(out);
  return out;
}

// What was being read is where it was; what was being written is not to be trusted.
shard_actions tiered_shard::transfer_lost() {
  shard_actions out;
  if (!std::exchange(transfer_ready_, false))
    return out;
  if (writing_)
    end_writes({config().index, writing_->number, std::vector<moved_page>(writing_->pages.size())});
  for (auto& [number, load] : loads_) {
    for (const auto& move : load.under_way) {
      moved_page unread;
      unread.holds[index_of(move.reading.from)] = true;
      index_.was_read(move.entry, move.reading, unread);
      memory_.drop_fresh(load.hold, move.page);
    }
    load.under_way.clear();
  }
  while (!loads_.empty())
    end_load(loads_.begin()->first, out);
  retry(0, out);
  return out;
}

} // namespace troupe
