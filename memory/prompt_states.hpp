// Owns the final states of prompts that a shard keeps, each beside the node of the prefix tree that holds the prompt's last
// tokens.
// Promises: a state is found only for exactly the prompt it was computed from (its hash finds it, its node's tokens decide);
// it goes with its node.
// Limits: `most` of them, at most limits::prompt_states_max; the least recently used goes. One thread, no locks.
#pragma once
#include <cstdint>
#include <list>
#include <optional>
#include <unordered_map>

#include "base/prompt_state.hpp"
#include "memory/prefix_cache.hpp"

namespace troupe {

class prompt_states {
public:
  struct found {
    page_handle page; // holds the prompt's last tokens
    prompt_state_ptr state;
  };

  explicit prompt_states(std::uint32_t most);

  // `page` begins with `tokens`, the prompt's last ones, behind `at`; a page keeps one, the newest.
  void put(const prefix_position& at, std::span<const token_id> tokens, page_handle page, prompt_state_ptr state);
  std::optional<found> find(const prefix_cache& cache, const prefix_position& at, std::span<const token_id> tokens);
  void move(page_handle gone, page_handle heir); // `gone` is a node no more; `heir` (generation 0: nobody) begins as it did

  std::size_t size() const noexcept { return entries_.size(); }
  void check_invariants(const prefix_cache& cache) const;

private:
  struct entry {
    prefix_hash key;
    page_handle page;
    int tokens = 0; // of the page, up to the prompt's end
    prompt_state_ptr state;
  };
  using entry_list = std::list<entry>;
  void erase(entry_list::iterator at);

  std::uint32_t most_;
  entry_list entries_; // least recently used first
  std::unordered_map<prefix_hash, entry_list::iterator, hash_of_prefix_hash> by_key_;
  std::unordered_map<page_id, entry_list::iterator> by_page_;
};

} // namespace troupe
