#include "memory/prefetch_predictor.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace troupe {

namespace {

constexpr auto block_tokens = static_cast<std::size_t>(limits::page_tokens);
constexpr float fading = 0.5f; // of what was seen before, with each new successor

} // namespace

conversation_end end_behind(const prefix_hash& pages, std::span<const token_id> tokens) {
  conversation_end out{pages, pages, 0};
  for (; tokens.size() >= block_tokens; tokens = tokens.subspan(block_tokens))
    out.pages = hash_block(out.pages, tokens.first<block_tokens>());
  out.all = tokens.empty() ? out.pages : hash_tokens(out.pages, tokens);
  out.rest = static_cast<int>(tokens.size());
  return out;
}

conversation_end end_of(std::uint64_t salt, std::span<const token_id> tokens) {
  return end_behind(hash_salt(salt), tokens);
}

prefetch_predictor::prefetch_predictor(std::size_t most) : most_(most) {}

conversation_number prefetch_predictor::begins(std::uint64_t salt, std::span<const token_id> prompt) {
  if (most_ == 0)
    return 0;
  auto conversation = recognise(salt, prompt);
  if (conversation == 0) {
    if (conversations_.size() >= most_)
      forget(seen_.front());
    conversation = next_++;
    conversations_[conversation].seen = seen_.insert(seen_.end(), conversation);
  }
  auto& r = conversations_.at(conversation);
  seen_.splice(seen_.end(), seen_, r.seen);
  place(r.prompt, end_of(salt, prompt), conversation);
  if (last_ != conversation)
    follows(last_, conversation);
  last_ = conversation;
  return conversation;
}

// The longest beginning of the prompt at which a conversation ended.
conversation_number prefetch_predictor::recognise(std::uint64_t salt, std::span<const token_id> prompt) const {
  std::vector<prefix_hash> pages{hash_salt(salt)};
  for (std::size_t i = 0; (i + 1) * block_tokens <= prompt.size(); ++i)
    pages.push_back(hash_block(pages.back(), prompt.subspan(i * block_tokens).first<block_tokens>()));
  for (std::size_t depth = pages.size(); depth-- > 0;) {
    const auto rest = prompt.subspan(depth * block_tokens);
    conversation_number found = 0;
    int longest = -1;
    const auto [first, last] = ends_.equal_range(pages[depth]);
    for (auto at = first; at != last; ++at) {
      const auto& [end, whose] = at->second;
      const auto n = static_cast<std::size_t>(end.rest);
      if (end.rest <= longest || n > rest.size() || (depth == 0 && n == 0))
        continue;
      if (n > 0 && !(hash_tokens(pages[depth], rest.first(n)) == end.all))
        continue;
      found = whose;
      longest = end.rest;
    }
    if (found != 0)
      return found;
  }
  return 0;
}

void prefetch_predictor::follows(conversation_number before, conversation_number after) {
  const auto known = conversations_.find(before);
  if (known == conversations_.end())
    return;
  auto& all = known->second.successors;
  auto same = std::find_if(all.begin(), all.end(), [&](const successor& s) { return s.number == after; });
  for (auto& s : all)
    s.weight *= fading;
  if (same == all.end()) {
    same = std::min_element(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.weight < b.weight; });
    *same = {after, 0};
  }
  same->weight += 1;
}

void prefetch_predictor::ends(conversation_number conversation, const conversation_end& where) {
  if (const auto known = conversations_.find(conversation); known != conversations_.end())
    place(known->second.answer, where, conversation);
}

std::vector<conversation_number> prefetch_predictor::next(conversation_number conversation, std::size_t most) const {
  std::vector<conversation_number> out;
  for (auto at = conversation; out.size() < most;) {
    const auto known = conversations_.find(at);
    if (known == conversations_.end())
      break;
    successor best;
    for (const auto& s : known->second.successors)
      if (s.number != 0 && s.weight > best.weight && conversations_.contains(s.number))
        best = s;
    if (best.number == 0 || best.number == conversation || std::find(out.begin(), out.end(), best.number) != out.end())
      break;
    out.push_back(at = best.number);
  }
  return out;
}

std::optional<conversation_end> prefetch_predictor::last_end(conversation_number conversation) const {
  const auto known = conversations_.find(conversation);
  if (known == conversations_.end())
    return std::nullopt;
  return known->second.answer ? known->second.answer : known->second.prompt;
}

void prefetch_predictor::place(std::optional<conversation_end>& at, const conversation_end& where, conversation_number whose) {
  unplace(at, whose);
  at = where;
  ends_.emplace(where.pages, known_end{where, whose});
}

void prefetch_predictor::unplace(const std::optional<conversation_end>& at, conversation_number whose) {
  if (!at)
    return;
  const auto [first, last] = ends_.equal_range(at->pages);
  const auto found = std::find_if(first, last, [&](const auto& e) { return e.second.whose == whose && e.second.end == *at; });
  TROUPE_CHECK(found != last);
  ends_.erase(found);
}

void prefetch_predictor::forget(conversation_number conversation) {
  const auto known = conversations_.find(conversation);
  unplace(known->second.prompt, conversation);
  unplace(known->second.answer, conversation);
  seen_.erase(known->second.seen);
  conversations_.erase(known);
}

void prefetch_predictor::check_invariants() const {
  std::size_t ends = 0;
  for (const auto& [number, r] : conversations_) {
    TROUPE_CHECK(number != 0 && number < next_ && *r.seen == number);
    ends += r.prompt.has_value() + r.answer.has_value();
  }
  TROUPE_CHECK(conversations_.size() <= most_ && seen_.size() == conversations_.size() && ends_.size() == ends);
}

} // namespace troupe
