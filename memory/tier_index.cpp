#include "memory/tier_index.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace troupe {

namespace {

constexpr auto block_tokens = static_cast<std::size_t>(limits::page_tokens);
constexpr std::array levels{tier_level::host, tier_level::disk};

int agreement_of(std::span<const token_id> a, std::span<const token_id> b) {
  const auto n = std::min(a.size(), b.size());
  return static_cast<int>(std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(n), b.begin()).first - a.begin());
}

} // namespace

// The tokens last, so that siblings stand together and a beginning before what goes on from it.
bool tier_index::by_place::operator()(const place_key& a, const place_key& b) const {
  if (a.salt != b.salt)
    return a.salt < b.salt;
  if (a.parent != b.parent)
    return a.parent < b.parent;
  return std::lexicographical_compare(a.tokens.begin(), a.tokens.end(), b.tokens.begin(), b.tokens.end());
}

tier_index::tier_index(tier_index_config config) : config_(config) {
  for (auto& slots : config_.slots)
    slots = std::min(slots, limits::tier_slots_max);
}

tier_index::entry& tier_index::at(tier_entry_id id) {
  const auto found = entries_.find(id);
  TROUPE_CHECK(found != entries_.end());
  return found->second;
}

const tier_index::entry& tier_index::at(tier_entry_id id) const {
  return const_cast<tier_index*>(this)->at(id);
}

bool tier_index::contains(tier_entry_id id) const {
  const auto found = entries_.find(id);
  return found != entries_.end() && !found->second.gone;
}

tier_entry_id tier_index::named(const prefix_hash& name) const {
  const auto found = names_.find(name);
  return found == names_.end() ? 0 : found->second;
}

tier_index::entry_view tier_index::view(tier_entry_id id) const {
  TROUPE_CHECK(contains(id));
  const entry& e = at(id);
  return {e.salt, e.parent, e.name, e.held(), e.slots, e.stored};
}

std::vector<tier_entry_id> tier_index::path(tier_entry_id id) const {
  TROUPE_CHECK(contains(id));
  std::vector<tier_entry_id> out;
  for (; id != 0; id = at(id).parent)
    out.push_back(id);
  std::reverse(out.begin(), out.end());
  return out;
}

std::vector<tier_entry_id> tier_index::find(std::uint64_t salt, std::span<const token_id> tokens,
                                            std::size_t blocks_max) const {
  std::vector<tier_entry_id> out;
  tier_entry_id parent = 0;
  for (std::size_t i = 0; i < blocks_max && (i + 1) * block_tokens <= tokens.size(); ++i) {
    const auto found = places_.find(place_key{salt, parent, tokens.subspan(i * block_tokens, block_tokens)});
    if (found == places_.end() || !(*found)->stored)
      break;
    parent = (*found)->id;
    out.push_back(parent);
  }
  return out;
}

// In the order of tokens no sibling agrees longer than one of the two that stand around where `tokens` would stand; one that
// is being written hides what it stands before.
tier_index::agreement tier_index::closest(std::uint64_t salt, tier_entry_id parent, std::span<const token_id> tokens) const {
  agreement best;
  const auto consider = [&](const entry& e) {
    if (e.salt != salt || e.parent != parent || !e.stored)
      return;
    if (const int agreed = agreement_of(e.held(), tokens); agreed > best.tokens)
      best = {e.id, agreed};
  };
  const auto behind = places_.lower_bound(place_key{salt, parent, tokens});
  if (behind != places_.end())
    consider(**behind);
  if (behind != places_.begin())
    consider(**std::prev(behind));
  return best;
}

void tier_index::touch(tier_entry_id id) {
  for (; id != 0; id = at(id).parent) {
    entry& e = at(id);
    const auto before = e.last_used;
    e.last_used = ++clock_;
    e.used_at = now_;
    for (const auto level : levels)
      if (tiers_[index_of(level)].order.erase({before, id}) > 0)
        tiers_[index_of(level)].order.emplace(e.last_used, id);
  }
}

tier_index::entry& tier_index::enter(const place_key& place, const prefix_hash& name, tier_entry_id id) {
  entry& e = entries_[id];
  e.id = id;
  e.parent = place.parent;
  e.salt = place.salt;
  e.name = name;
  e.length = static_cast<int>(place.tokens.size());
  std::copy(place.tokens.begin(), place.tokens.end(), e.tokens.begin());
  places_.insert(&e);
  names_[name] = id;
  if (e.parent != 0)
    ++at(e.parent).children;
  return e;
}

tier_index::addition tier_index::add(std::uint64_t salt, tier_entry_id parent, std::span<const token_id> tokens,
                                     const prefix_hash& name) {
  TROUPE_CHECK(!tokens.empty() && tokens.size() <= block_tokens);
  TROUPE_CHECK(parent == 0 || (contains(parent) && at(parent).length == limits::page_tokens));
  const place_key place{salt, parent, tokens};
  if (const auto known = places_.find(place); known != places_.end()) {
    touch((*known)->id);
    return {(*known)->id, false};
  }
  if (tokens.size() < block_tokens)
    if (const auto known = closest(salt, parent, tokens); known.tokens == static_cast<int>(tokens.size())) {
      touch(known.id);
      return {known.id, false};
    }
  entry& e = enter(place, name, next_id_++); // before room is made, so that its ancestors are no leaves
  e.locks = 1;
  for (const auto level : levels)
    if (const auto slot = take_slot(level))
      put_copy(e, level, *slot);
  if (!e.slots[0] && !e.slots[1]) {
    e.locks = 0;
    leave(e);
    return {};
  }
  touch(e.id);
  return {e.id, true};
}

void tier_index::written(tier_entry_id id, const by_level<bool>& holds) {
  entry& e = at(id);
  TROUPE_CHECK(!e.stored && e.locks > 0);
  if (!e.gone) {
    for (const auto level : levels)
      if (const auto slot = e.slots[index_of(level)]; slot && !holds[index_of(level)]) {
        lose_copy(e, level);
        give_slot(level, *slot);
      }
    if (e.slots[0] || e.slots[1]) {
      e.stored = true;
      if (e.slots[index_of(tier_level::disk)] && observer_.stored)
        observer_.stored(record_of(e));
      drop_covered(e);
    } else {
      counters_.dropped += drop(id);
    }
  }
  unlock(e);
}

tier_index::reading tier_index::read(tier_entry_id id) {
  TROUPE_CHECK(contains(id) && at(id).stored);
  entry& e = at(id);
  ++e.locks;
  reading out{e.slots, e.slots[0] ? tier_level::host : tier_level::disk};
  if (out.from == tier_level::disk)
    out.slots[0] = take_slot(tier_level::host);
  return out;
}

void tier_index::was_read(tier_entry_id id, const reading& what, const moved_page& how) {
  entry& e = at(id);
  TROUPE_CHECK(e.locks > 0);
  if (what.from == tier_level::disk && what.slots[0]) { // a copy of ours, if nobody else put one there meanwhile
    if (!e.gone && !e.slots[0] && how.end == move_end::done && how.holds[0])
      put_copy(e, tier_level::host, *what.slots[0]);
    else
      give_slot(tier_level::host, *what.slots[0]);
  }
  if (how.end != move_end::done && !e.gone && e.slots[index_of(what.from)] && !how.holds[index_of(what.from)]) {
    const auto slot = *e.slots[index_of(what.from)];
    if (e.slots[1 - index_of(what.from)]) {
      lose_copy(e, what.from);
      give_slot(what.from, slot);
    } else {
      counters_.dropped += drop(id);
    }
  }
  unlock(e);
}

// -- room --

bool tier_index::may_go(const entry& e, tier_level level) const {
  return e.locks == 0 && (e.children == 0 || e.slots[1 - index_of(level)]);
}

std::optional<std::uint32_t> tier_index::take_slot(tier_level level) {
  tier& t = tiers_[index_of(level)];
  const auto slots = config_.slots[index_of(level)];
  if (t.free.empty() && t.next == slots) {
    const auto victim =
        std::find_if(t.order.begin(), t.order.end(), [&](const auto& o) { return may_go(at(o.second), level); });
    if (victim == t.order.end())
      return std::nullopt;
    entry& e = at(victim->second);
    ++counters_.evicted[index_of(level)];
    if (e.slots[1 - index_of(level)]) {
      const auto slot = *e.slots[index_of(level)];
      lose_copy(e, level);
      give_slot(level, slot);
    } else {
      leave(e);
    }
  }
  ++t.used;
  if (t.free.empty())
    return config_.first[index_of(level)] + t.next++;
  const auto slot = t.free.back();
  t.free.pop_back();
  return slot;
}

void tier_index::give_slot(tier_level level, std::uint32_t slot) {
  tier& t = tiers_[index_of(level)];
  TROUPE_CHECK(t.used > 0);
  --t.used;
  t.free.push_back(slot);
}

void tier_index::put_copy(entry& e, tier_level level, std::uint32_t slot) {
  e.slots[index_of(level)] = slot;
  tiers_[index_of(level)].order.emplace(e.last_used, e.id);
}

void tier_index::lose_copy(entry& e, tier_level level) {
  e.slots[index_of(level)].reset();
  TROUPE_CHECK(tiers_[index_of(level)].order.erase({e.last_used, e.id}) == 1);
  if (level == tier_level::disk && e.stored && observer_.dropped)
    observer_.dropped(e.id);
}

// -- leaving --

void tier_index::leave(entry& e) {
  TROUPE_CHECK(!e.gone && e.children == 0);
  places_.erase(&e);
  if (const auto named = names_.find(e.name); named != names_.end() && named->second == e.id)
    names_.erase(named);
  if (e.parent != 0)
    --at(e.parent).children;
  for (const auto level : levels)
    if (e.slots[index_of(level)]) {
      const auto slot = *e.slots[index_of(level)];
      lose_copy(e, level);
      e.slots[index_of(level)] = slot; // until the last lock is gone
    }
  e.gone = true;
  if (e.locks == 0)
    erase_gone(e.id);
}

void tier_index::erase_gone(tier_entry_id id) {
  entry& e = at(id);
  for (const auto level : levels)
    if (const auto slot = e.slots[index_of(level)])
      give_slot(level, *slot);
  entries_.erase(id);
}

void tier_index::unlock(entry& e) {
  if (--e.locks == 0 && e.gone)
    erase_gone(e.id);
}

std::uint64_t tier_index::drop(tier_entry_id id) {
  std::vector<tier_entry_id> all{id};
  for (std::size_t i = 0; i < all.size(); ++i)
    for (auto child = places_.lower_bound(place_key{at(all[i]).salt, all[i], {}});
         child != places_.end() && (*child)->salt == at(all[i]).salt && (*child)->parent == all[i]; ++child)
      all.push_back((*child)->id);
  for (auto each = all.rbegin(); each != all.rend(); ++each)
    leave(at(*each));
  return all.size();
}

// Tails that hold nothing but `by`'s beginning.
void tier_index::drop_covered(const entry& by) {
  for (auto place = places_.find(by_place::key_of(&by)); place != places_.begin();) {
    entry& before = **std::prev(place);
    const bool covered = before.salt == by.salt && before.parent == by.parent && before.length < by.length &&
                         agreement_of(before.held(), by.held()) == before.length;
    if (!covered || before.locks > 0)
      return;
    ++counters_.covered;
    leave(before);
  }
}

// The oldest stands first, and nothing is older than what lies behind it.
void tier_index::expire(steady_time now) {
  now_ = std::max(now_, now);
  if (config_.time_to_live <= steady_time::duration::zero())
    return;
  for (auto& t : tiers_)
    while (!t.order.empty()) {
      entry& e = at(t.order.begin()->second);
      if (e.locks > 0 || e.children > 0 || now_ - e.used_at < config_.time_to_live)
        break;
      ++counters_.expired;
      leave(e);
    }
}

// -- kept elsewhere --

tier_record tier_index::record_of(const entry& e) const {
  return {e.id, e.parent, e.salt, e.name, *e.slots[index_of(tier_level::disk)], {e.held().begin(), e.held().end()}};
}

std::vector<tier_record> tier_index::records() const {
  std::vector<tier_record> out;
  for (const entry* e : places_)
    if (e->stored && e->slots[index_of(tier_level::disk)])
      out.push_back(record_of(*e));
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.id < b.id; }); // a parent is older
  return out;
}

void tier_index::restore(std::span<const tier_record> records) {
  TROUPE_CHECK(entries_.empty());
  const auto disk = index_of(tier_level::disk);
  tier& t = tiers_[disk];
  std::set<std::uint32_t> taken;
  for (const auto& r : records) {
    const auto slot = r.disk_slot - config_.first[disk];
    const bool fits = r.id >= next_id_ && r.disk_slot >= config_.first[disk] && slot < config_.slots[disk] &&
                      !taken.contains(slot) && !r.tokens.empty() && r.tokens.size() <= block_tokens &&
                      (r.parent == 0 || (contains(r.parent) && at(r.parent).length == limits::page_tokens)) &&
                      !places_.contains(place_key{r.salt, r.parent, r.tokens});
    if (!fits)
      continue;
    entry& e = enter({r.salt, r.parent, r.tokens}, r.name, r.id);
    next_id_ = r.id + 1;
    e.stored = true;
    put_copy(e, tier_level::disk, r.disk_slot);
    taken.insert(slot);
    ++t.used;
  }
  std::vector<tier_entry_id> leaves;
  for (const entry* e : places_)
    if (e->children == 0)
      leaves.push_back(e->id);
  std::sort(leaves.begin(), leaves.end());
  for (const auto leaf : leaves)
    touch(leaf);
  t.next = taken.empty() ? 0 : *taken.rbegin() + 1;
  for (std::uint32_t i = 0; i < t.next; ++i)
    if (!taken.contains(i))
      t.free.push_back(config_.first[disk] + i);
}

tier_index_stats tier_index::stats() const {
  tier_index_stats s = counters_;
  for (std::size_t i = 0; i < tier_levels; ++i)
    s.used[i] = tiers_[i].used;
  s.entries = places_.size();
  return s;
}

void tier_index::check_invariants() const {
  by_level<std::set<std::uint32_t>> taken;
  by_level<std::size_t> ordered{};
  std::unordered_map<tier_entry_id, std::uint32_t> children;
  std::size_t here = 0;
  for (const auto& [id, e] : entries_) {
    TROUPE_CHECK(e.id == id && id < next_id_ && (!e.gone || e.locks > 0) && (e.stored || e.locks > 0));
    TROUPE_CHECK(e.slots[0] || e.slots[1]);
    for (std::size_t i = 0; i < tier_levels; ++i) {
      if (!e.slots[i])
        continue;
      TROUPE_CHECK(taken[i].insert(*e.slots[i]).second);
      TROUPE_CHECK(*e.slots[i] >= config_.first[i] && *e.slots[i] - config_.first[i] < tiers_[i].next);
      ordered[i] += !e.gone;
      TROUPE_CHECK(tiers_[i].order.contains({e.last_used, id}) == !e.gone);
    }
    if (e.gone)
      continue;
    ++here;
    TROUPE_CHECK(places_.contains(by_place::key_of(&e)));
    if (e.parent == 0)
      continue;
    TROUPE_CHECK(contains(e.parent) && at(e.parent).length == limits::page_tokens && at(e.parent).salt == e.salt);
    TROUPE_CHECK(at(e.parent).last_used > e.last_used);
    ++children[e.parent];
  }
  TROUPE_CHECK(here == places_.size());
  for (const entry* e : places_)
    TROUPE_CHECK(e->children == (children.contains(e->id) ? children.at(e->id) : 0));
  for (std::size_t i = 0; i < tier_levels; ++i) {
    const tier& t = tiers_[i];
    TROUPE_CHECK(ordered[i] == t.order.size() && t.next <= config_.slots[i]);
    TROUPE_CHECK(t.used + t.free.size() == t.next && taken[i].size() <= t.used); // the rest is being filled by a read
    for (const auto slot : t.free)
      TROUPE_CHECK(!taken[i].contains(slot));
  }
}

} // namespace troupe
