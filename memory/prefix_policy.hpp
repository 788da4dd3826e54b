// What may be chosen about prefix reuse; the same for all shards.
#pragma once
#include <chrono>
#include <cstdint>

namespace troupe {

// Which idle leaf of the prefix tree goes first when pages run short.
enum class eviction_policy {
  lru, // the least recently used
  lfu, // the least often found, aged: what was found often long ago gives way to what is found now
};

struct prefix_policy {
  bool reuse = true;               // off: nothing is published, so nothing is found
  bool partial_pages = true;       // a page in part full is published, too, and its beginning reused by copy
  std::uint32_t prompt_states = 0; // final states of prompts that a shard keeps; 0: none
  eviction_policy eviction = eviction_policy::lru;
  std::chrono::seconds time_to_live{0}; // of what is used by no lease; 0: no end
  int pinned_percent = 25;              // of a shard's pages that may be pinned
};

} // namespace troupe
