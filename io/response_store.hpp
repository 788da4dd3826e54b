// Finished responses, kept so that a later request can go on from them by id.
//
// Owns the responses; the oldest is dropped beyond either bound. Promises: a response is visible to its own tenant alone;
// messages are shared between the responses of one conversation, so a long chat costs its length once. Any thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/chat.hpp"

namespace troupe {

using shared_conversation = std::vector<std::shared_ptr<const chat_message>>;

struct stored_response {
  std::string id;
  std::string tenant;
  shared_conversation conversation; // input and output, without the instructions
  std::string json;                 // the response object as it was answered
};

class response_store {
public:
  response_store(std::size_t responses_max, std::size_t bytes_max) : responses_max_(responses_max), bytes_max_(bytes_max) {}

  void put(stored_response response);
  std::optional<shared_conversation> conversation(std::string_view id, std::string_view tenant) const;
  std::optional<std::string> json(std::string_view id, std::string_view tenant) const;
  bool erase(std::string_view id, std::string_view tenant);
  bool drop_oldest(); // false where there is none
  std::size_t size() const;
  std::size_t bytes() const;

private:
  using response_list = std::list<stored_response>;

  const stored_response* find(std::string_view id, std::string_view tenant) const;
  void drop(response_list::iterator it);
  void count(const stored_response& response);
  void discount(const stored_response& response);

  const std::size_t responses_max_;
  const std::size_t bytes_max_;
  mutable std::mutex mutex_;
  response_list responses_; // oldest first
  std::unordered_map<std::string, response_list::iterator> by_id_;
  std::unordered_map<const chat_message*, std::size_t> holders_; // how many responses hold each message
  std::size_t bytes_ = 0;                                        // responses, and each message once
};

} // namespace troupe
