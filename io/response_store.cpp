#include "io/response_store.hpp"

namespace troupe {
namespace {

std::size_t bytes_of(const chat_message& message) {
  return sizeof(chat_message) + text_bytes(message) + message.tool_calls.size() * sizeof(tool_call);
}

std::size_t own_bytes(const stored_response& response) {
  return sizeof(stored_response) + response.id.size() + response.tenant.size() + response.json.size() + response.conversation.size() * sizeof(response.conversation[0]);
}

} // namespace

void response_store::count(const stored_response& response) {
  bytes_ += own_bytes(response);
  for (const auto& message : response.conversation)
    if (++holders_[message.get()] == 1)
      bytes_ += bytes_of(*message);
}

void response_store::discount(const stored_response& response) {
  bytes_ -= own_bytes(response);
  for (const auto& message : response.conversation) {
    const auto it = holders_.find(message.get());
    if (--it->second == 0) {
      bytes_ -= bytes_of(*message);
      holders_.erase(it);
    }
  }
}

void response_store::put(stored_response response) {
  const std::lock_guard lock(mutex_);
  if (const auto old = by_id_.find(response.id); old != by_id_.end())
    drop(old->second);
  count(response);
  responses_.push_back(std::move(response));
  by_id_.emplace(responses_.back().id, std::prev(responses_.end()));
  while (!responses_.empty() && (responses_.size() > responses_max_ || bytes_ > bytes_max_))
    drop(responses_.begin());
}

void response_store::drop(response_list::iterator it) {
  discount(*it);
  by_id_.erase(it->id);
  responses_.erase(it);
}

const stored_response* response_store::find(std::string_view id, std::string_view tenant) const {
  const auto it = by_id_.find(std::string(id));
  return it != by_id_.end() && it->second->tenant == tenant ? &*it->second : nullptr;
}

std::optional<shared_conversation> response_store::conversation(std::string_view id, std::string_view tenant) const {
  const std::lock_guard lock(mutex_);
  const stored_response* found = find(id, tenant);
  return found ? std::optional(found->conversation) : std::nullopt;
}

std::optional<std::string> response_store::json(std::string_view id, std::string_view tenant) const {
  const std::lock_guard lock(mutex_);
  const stored_response* found = find(id, tenant);
  return found ? std::optional(found->json) : std::nullopt;
}

bool response_store::erase(std::string_view id, std::string_view tenant) {
  const std::lock_guard lock(mutex_);
  if (!find(id, tenant))
    return false;
  drop(by_id_.find(std::string(id))->second);
  return true;
}

bool response_store::drop_oldest() {
  const std::lock_guard lock(mutex_);
  if (responses_.empty())
    return false;
  drop(responses_.begin());
  return true;
}

std::size_t response_store::size() const {
  const std::lock_guard lock(mutex_);
  return responses_.size();
}

std::size_t response_store::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

} // namespace troupe
