// The merge rules of a BPE model, and their application to one pre-token.
//
// Immutable; any number of threads. Ranks: the lowest applicable rule is applied first, leftmost first, as Hugging Face does.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/ids.hpp"

namespace troupe {

class merge_table {
public:
  struct rule {
    token_id left = -1;
    token_id right = -1;
    token_id result = -1;
  };
  static constexpr std::uint32_t no_rank = 0x7FFFFFFF;
  struct outcome {
    std::uint32_t rank = no_rank;
    token_id result = -1;
  };

  merge_table() = default;
  explicit merge_table(const std::vector<rule>& best_first); // of rules for the same pair, the last one holds

  outcome find(token_id left, token_id right) const noexcept {
    const std::uint64_t key = key_of(left, right);
    const std::uint64_t hash = hash_of(key);
    if (((present_[(hash >> 6) & present_mask_] >> (hash & 63)) & 1) == 0)
      return {};
    return find_slot(key, hash);
  }

  // Working memory of one thread, kept between pre-tokens so that nothing is allocated for each.
  struct scratch {
    struct node {
      token_id id;
      std::int32_t previous;
      std::int32_t next;
    };
    struct candidate {
      std::uint32_t rank;
      std::int32_t position;
      token_id left;
      token_id right;
      token_id result;
    };
    std::vector<node> nodes;
    std::vector<candidate> heap;
  };

  // Merges ids[0..count) in place and returns how many are left. O(count log count) at most.
  std::size_t apply(token_id* ids, std::size_t count, scratch& work) const;

private:
  struct slot {
    std::uint64_t key = empty_key;
    std::uint32_t rank = no_rank;
    token_id result = -1;
  };
  static constexpr std::uint64_t empty_key = ~std::uint64_t{0};

  static std::uint64_t key_of(token_id left, token_id right) noexcept {
    return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32) | static_cast<std::uint32_t>(right);
  }
  static std::uint64_t hash_of(std::uint64_t key) noexcept {
    key = (key ^ (key >> 32)) * 0x9e3779b97f4a7c15ull;
    return key ^ (key >> 29);
  }
  outcome find_slot(std::uint64_t key, std::uint64_t hash) const noexcept {
    for (std::uint64_t place = (hash >> 20) & mask_;; place = (place + 1) & mask_) {
      const slot& s = slots_[place];
      if (s.key == key)
        return {s.rank, s.result};
      if (s.key == empty_key)
        return {};
    }
  }
  std::size_t apply_short(token_id* ids, std::size_t count) const noexcept;
  std::size_t apply_long(token_id* ids, std::size_t count, scratch& work) const;

  std::vector<slot> slots_ = std::vector<slot>(1);
  std::uint64_t mask_ = 0;
  // A bit for every hash that has a rule: most pairs have none and are answered from this small table.
  std::vector<std::uint64_t> present_ = std::vector<std::uint64_t>(1);
  std::uint64_t present_mask_ = 0;
};

} // namespace troupe
