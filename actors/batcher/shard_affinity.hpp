// Owns what the batcher remembers of where beginnings of prompts lie: which shards hold the page that ends each.
// Promises: a guess, never more: the shard itself knows, and is believed where it says otherwise.
// Limits: limits::known_prefixes_max pages; the least recently used goes. One thread, no locks.
//
// Two shards may come to hold the same beginning: when keeping everybody on the one that knows it has made it give up as many
// pages as the beginning is worth, it is computed once more elsewhere.
#pragma once
#include <cstdint>
#include <list>
#include <unordered_map>
#include <vector>

#include "memory/prefix_hash.hpp"

namespace troupe {

// The name of each whole page's end.
std::vector<prefix_hash> beginnings_of(std::uint64_t salt, const std::vector<token_id>& tokens);

class shard_affinity {
public:
  explicit shard_affinity(std::size_t shards) : debts_(shards) {}

  // `shard` holds the pages that end at positions (from, to], as far as `beginnings` goes.
  void learn(const std::vector<prefix_hash>& beginnings, int from, int to, std::uint32_t shard);
  // It holds those up to position `to`, and none behind.
  void correct(const std::vector<prefix_hash>& beginnings, int to, std::uint32_t shard);
  void forget(std::uint32_t shard);

  // How many pages of `beginnings` each shard holds, from the first without gap.
  std::vector<std::uint32_t> known_pages(const std::vector<prefix_hash>& beginnings);

  // `shard`, which knows `known` pages of a beginning, would give up `evicted` pages to take one more that begins so; true: that
  // is enough by now.
  bool spills(std::uint32_t shard, std::uint32_t evicted, std::uint32_t known);

  std::size_t size() const noexcept { return entries_.size(); }

private:
  struct entry {
    prefix_hash key;
    std::uint64_t shards = 0; // a bit each
  };
  std::list<entry> entries_; // least recently used first
  std::unordered_map<prefix_hash, std::list<entry>::iterator, hash_of_prefix_hash> by_key_;
  std::vector<std::uint64_t> debts_; // pages given up, by shard
};

} // namespace troupe
