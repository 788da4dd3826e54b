// Owns which conversations a shard has seen, where each one ended last, and which came after which; so what is likely to be
// asked for next.
// Promises: a turn is recognised by the tokens that its prompt begins with (by their hashes: a wrong guess costs a prefetch,
// nothing else); what comes after is learned from a single round and unlearned as fast.
// Limits: limits::known_conversations_max conversations, the least recently seen is forgotten; four successors each.
// Pure decisions; one thread, no locks.
#pragma once
#include <array>
#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/ids.hpp"
#include "memory/prefix_hash.hpp"

namespace troupe {

using conversation_number = std::uint64_t; // 0: none; never used twice

// A place behind some tokens: the whole pages, and those behind them in a page in part full.
struct conversation_end {
  prefix_hash pages; // of the whole pages
  prefix_hash all;   // of all tokens; equal to `pages` where there are no others
  int rest = 0;      // tokens behind the whole pages
  friend bool operator==(const conversation_end&, const conversation_end&) = default;
};

conversation_end end_of(std::uint64_t salt, std::span<const token_id> tokens);
conversation_end end_behind(const prefix_hash& pages, std::span<const token_id> tokens);

class prefetch_predictor {
public:
  explicit prefetch_predictor(std::size_t most);

  // A turn with this prompt begins: the conversation that it goes on with, or a new one. It follows the last one that began.
  conversation_number begins(std::uint64_t salt, std::span<const token_id> prompt);
  // The turn's tokens, answer included, end there. An unknown conversation is ignored.
  void ends(conversation_number conversation, const conversation_end& where);
  // The likely next ones after `conversation`, nearest first, each once; at most `most`.
  std::vector<conversation_number> next(conversation_number conversation, std::size_t most) const;
  // Where it ended last, or its prompt did.
  std::optional<conversation_end> last_end(conversation_number conversation) const;

  std::size_t size() const noexcept { return conversations_.size(); }
  void check_invariants() const;

private:
  struct successor {
    conversation_number number = 0; // 0: none
    float weight = 0;
  };
  struct record {
    std::optional<conversation_end> prompt, answer;
    std::array<successor, 4> successors{};
    std::list<conversation_number>::iterator seen;
  };

  conversation_number recognise(std::uint64_t salt, std::span<const token_id> prompt) const;
  void follows(conversation_number before, conversation_number after);
  void place(std::optional<conversation_end>& at, const conversation_end& where, conversation_number whose);
  void unplace(const std::optional<conversation_end>& at, conversation_number whose);
  void forget(conversation_number conversation);

  std::size_t most_;
  std::unordered_map<conversation_number, record> conversations_;
  std::list<conversation_number> seen_; // least recently first
  struct known_end {
    conversation_end end;
    conversation_number whose = 0;
  };
  std::unordered_multimap<prefix_hash, known_end, hash_of_prefix_hash> ends_; // by their whole pages
  conversation_number last_ = 0;
  conversation_number next_ = 1;
};

} // namespace troupe
