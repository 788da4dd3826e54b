// Owns, for conversations that were rendered before, one buffer of tokens each and a record a message: so a turn's messages are
// all that must be rendered and tokenised, and the turns before it are copied as numbers.
//
// Promises: a beginning is found only by its key (memory/conversation_keys.hpp), so only where a rendering from the start would
// give the same tokens. A conversation that goes on grows in place; one that leaves its past (an edit, another question to the
// same system prompt, a think block that is dropped) becomes a conversation of its own and the old one stays for who returns.
// Limits: bytes_max in all, with room for what stands around the tokens; beyond it the conversations used longest ago are
// forgotten, whole. One that alone exceeds it is not kept. One thread, no locks. After an exception only clear() helps.
#pragma once
#include <cstddef>
#include <cstdint>
#include <list>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/chat_rendering.hpp"
#include "base/ids.hpp"
#include "memory/conversation_keys.hpp"

namespace troupe {

struct token_history_stats {
  std::size_t conversations = 0;
  std::size_t messages = 0; // records, of all conversations
  std::size_t bytes = 0;
  std::uint64_t forgotten = 0; // conversations, since the start
};

class token_history {
  struct record {
    conversation_key key;
    message_end end;
  };
  struct remembered_conversation {
    std::vector<token_id> tokens; // up to the last record's end
    std::vector<record> records;  // by end, ascending
    std::size_t bytes() const noexcept;
  };
  using conversation_list = std::list<remembered_conversation>;

public:
  explicit token_history(std::size_t bytes_max) : bytes_max_(bytes_max) {}
  token_history(const token_history&) = delete;
  token_history& operator=(const token_history&) = delete;

  // The longest beginning that is known. Valid until the next remember() or clear().
  class beginning {
  public:
    bool empty() const noexcept { return records_ == 0; }
    message_end end() const { return empty() ? message_end{} : conversation_->records[records_ - 1].end; }
    std::span<const token_id> tokens() const noexcept {
      return empty() ? std::span<const token_id>() : std::span(conversation_->tokens).first(tokens_);
    }

  private:
    friend token_history;
    conversation_list::iterator conversation_{};
    std::size_t records_ = 0; // of the conversation's; 0: nothing is known
    std::size_t tokens_ = 0;
  };
  // `keys`: one a message.
  beginning find(std::span<const conversation_key> keys);

  // The prompt was rendered on from `known`: `tokens` of all of it, `ends` of the messages that were new, in order.
  void remember(const beginning& known, std::span<const conversation_key> keys, std::span<const token_id> tokens,
                std::span<const message_end> ends);
  void clear() noexcept;

  token_history_stats stats() const noexcept;
  void check_invariants() const;

private:
  struct place {
    conversation_list::iterator conversation;
    std::size_t record = 0;
  };
  struct hash_of_key {
    std::size_t operator()(const conversation_key& key) const noexcept { return static_cast<std::size_t>(key.a); }
  };

  conversation_list::iterator branch(const beginning& known);
  void append(conversation_list::iterator conversation, record next);
  void forget(conversation_list::iterator conversation);

  const std::size_t bytes_max_;
  conversation_list conversations_; // last used first
  // Of each known key, the place in the conversation that came to it last; each record's key, unless that one was forgotten.
  std::unordered_map<conversation_key, place, hash_of_key> places_;
  std::size_t bytes_ = 0;
  std::size_t messages_ = 0;
  std::uint64_t forgotten_ = 0;
};

} // namespace troupe
