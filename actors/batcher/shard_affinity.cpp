#include "actors/batcher/shard_affinity.hpp"

#include <algorithm>

namespace troupe {

namespace {
constexpr auto block_tokens = static_cast<std::size_t>(limits::page_tokens);
static_assert(limits::kv_shards_max <= 64, "one bit a shard");

std::uint64_t bit_of(std::uint32_t shard) { return std::uint64_t{1} << shard; }
std::size_t pages_in(int tokens) { return static_cast<std::size_t>(tokens) / block_tokens; }
} // namespace

std::vector<prefix_hash> beginnings_of(std::uint64_t salt, const std::vector<token_id>& tokens) {
  std::vector<prefix_hash> out;
  out.reserve(tokens.size() / block_tokens);
  auto hash = hash_salt(salt);
  for (std::size_t i = 0; (i + 1) * block_tokens <= tokens.size(); ++i)
    out.push_back(hash = hash_block(hash, std::span(tokens).subspan(i * block_tokens).first<block_tokens>()));
  return out;
}

void shard_affinity::learn(const std::vector<prefix_hash>& beginnings, int from, int to, std::uint32_t shard) {
  // The first page last: it is the one that all others need.
  for (std::size_t i = std::min(pages_in(to), beginnings.size()); i-- > pages_in(from);) {
    auto known = by_key_.find(beginnings[i]);
    if (known == by_key_.end()) {
      if (entries_.size() >= limits::known_prefixes_max) {
        by_key_.erase(entries_.front().key);
        entries_.pop_front();
      }
      entries_.push_back({beginnings[i], 0});
      known = by_key_.emplace(beginnings[i], std::prev(entries_.end())).first;
    } else {
      entries_.splice(entries_.end(), entries_, known->second);
    }
    known->second->shards |= bit_of(shard);
  }
}

void shard_affinity::correct(const std::vector<prefix_hash>& beginnings, int to, std::uint32_t shard) {
  learn(beginnings, 0, to, shard);
  for (std::size_t i = pages_in(to); i < beginnings.size(); ++i) {
    const auto known = by_key_.find(beginnings[i]);
    if (known == by_key_.end() || !(known->second->shards & bit_of(shard)))
      return;
    known->second->shards &= ~bit_of(shard);
  }
}

void shard_affinity::forget(std::uint32_t shard) {
  for (auto& e : entries_)
    e.shards &= ~bit_of(shard);
  debts_[shard] = 0;
}

std::vector<std::uint32_t> shard_affinity::known_pages(const std::vector<prefix_hash>& beginnings) {
  std::vector<std::uint32_t> out(debts_.size());
  std::uint64_t holding = ~std::uint64_t{0};
  std::uint32_t depth = 0;
  for (; depth < beginnings.size(); ++depth) {
    const auto known = by_key_.find(beginnings[depth]);
    const auto still = known == by_key_.end() ? 0 : holding & known->second->shards;
    for (std::uint32_t shard = 0; shard < out.size(); ++shard)
      if (holding & ~still & bit_of(shard))
        out[shard] = depth;
    holding = still;
    if (holding == 0)
      break;
  }
  for (std::uint32_t shard = 0; shard < out.size(); ++shard)
    if (holding & bit_of(shard))
      out[shard] = depth;
  for (auto i = depth; i-- > 0;)
    if (const auto known = by_key_.find(beginnings[i]); known != by_key_.end())
      entries_.splice(entries_.end(), entries_, known->second);
  return out;
}

bool shard_affinity::spills(std::uint32_t shard, std::uint32_t evicted, std::uint32_t known) {
  debts_[shard] += evicted;
  if (debts_[shard] < known)
    return false;
  debts_[shard] = 0;
  return true;
}

} // namespace troupe
