#include "memory/token_history.hpp"

#include "base/check.hpp"

namespace troupe {
namespace {

// What a record costs in the index: its key and place, the node around them, a share of the buckets.
constexpr std::size_t index_bytes = sizeof(conversation_key) + 6 * sizeof(void*);

} // namespace

// Open texts are a few bytes and stand inside their strings.
std::size_t token_history::remembered_conversation::bytes() const noexcept {
  return sizeof(conversation_list::value_type) + 2 * sizeof(void*) + tokens.capacity() * sizeof(token_id) +
         records.capacity() * sizeof(record) + records.size() * index_bytes;
}

token_history::beginning token_history::find(std::span<const conversation_key> keys) {
  beginning known;
  for (std::size_t i = keys.size(); i-- > 0;) {
    const auto found = places_.find(keys[i]);
    if (found == places_.end())
      continue;
    const auto [conversation, index] = found->second;
    conversations_.splice(conversations_.begin(), conversations_, conversation);
    known.conversation_ = conversation;
    known.records_ = index + 1;
    known.tokens_ = conversation->records[index].end.tokens;
    TROUPE_CHECK(conversation->records[index].end.messages == i + 1);
    break;
  }
  return known;
}

void token_history::remember(const beginning& known, std::span<const conversation_key> keys, std::span<const token_id> tokens,
                             std::span<const message_end> ends) {
  if (ends.empty())
    return;
  const bool goes_on = !known.empty() && known.records_ == known.conversation_->records.size();
  const auto conversation = goes_on ? known.conversation_ : branch(known);
  auto& buffer = conversation->tokens;
  TROUPE_CHECK(ends.back().tokens <= tokens.size() && buffer.size() <= ends.front().tokens);
  bytes_ -= conversation->bytes();
  buffer.insert(buffer.end(), tokens.begin() + static_cast<std::ptrdiff_t>(buffer.size()),
                tokens.begin() + static_cast<std::ptrdiff_t>(ends.back().tokens));
  for (const auto& end : ends)
    append(conversation, {keys[end.messages - 1], end});
  bytes_ += conversation->bytes();
  if (conversation->bytes() > bytes_max_)
    forget(conversation); // alone too large: the others are not to pay for it
  while (bytes_ > bytes_max_)
    forget(std::prev(conversations_.end()));
}

// A conversation of its own with a copy of what is known.
token_history::conversation_list::iterator token_history::branch(const beginning& known) {
  conversations_.emplace_front();
  const auto conversation = conversations_.begin();
  conversation->tokens.assign(known.tokens().begin(), known.tokens().end());
  for (std::size_t i = 0; i < known.records_; ++i)
    append(conversation, known.conversation_->records[i]);
  bytes_ += conversation->bytes();
  return conversation;
}

void token_history::append(conversation_list::iterator conversation, record next) {
  auto& records = conversation->records;
  const auto key = next.key;
  records.push_back(std::move(next));
  ++messages_;
  places_.insert_or_assign(key, place{conversation, records.size() - 1});
}

void token_history::forget(conversation_list::iterator conversation) {
  for (const auto& one : conversation->records)
    if (const auto found = places_.find(one.key); found != places_.end() && found->second.conversation == conversation)
      places_.erase(found);
  bytes_ -= conversation->bytes();
  messages_ -= conversation->records.size();
  conversations_.erase(conversation);
  ++forgotten_;
}

void token_history::clear() noexcept {
  places_.clear();
  conversations_.clear();
  bytes_ = messages_ = 0;
}

token_history_stats token_history::stats() const noexcept {
  return {conversations_.size(), messages_, bytes_, forgotten_};
}

void token_history::check_invariants() const {
  std::size_t bytes = 0, messages = 0;
  for (const auto& conversation : conversations_) {
    bytes += conversation.bytes();
    messages += conversation.records.size();
    TROUPE_CHECK(!conversation.records.empty() && conversation.records.back().end.tokens == conversation.tokens.size());
    for (std::size_t i = 1; i < conversation.records.size(); ++i) {
      const auto &before = conversation.records[i - 1].end, &end = conversation.records[i].end;
      TROUPE_CHECK(before.messages < end.messages && before.tokens <= end.tokens);
    }
  }
  TROUPE_CHECK(bytes == bytes_ && bytes <= bytes_max_ && messages == messages_ && places_.size() <= messages);
  for (const auto& [key, at] : places_)
    TROUPE_CHECK(at.record < at.conversation->records.size() && at.conversation->records[at.record].key == key);
}

} // namespace troupe
