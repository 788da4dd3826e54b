// Finished responses, kept so that a later request can go on from them by id.
//
// Owns the responses; the oldest is dropped beyond either bound. Promises: a response is visible to its own tenant alone;
// messages are shared between the responses of one conversation, so a long chat costs its length once. With records the
// responses survive the process: one is visible, and its keeper told, when the records hold it, and what is dropped here is
// erased there. The destructor waits for the writes that were asked for. Any thread.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/chat.hpp"
#include "base/log.hpp"
#include "base/record_store.hpp"

namespace troupe {

using shared_conversation = std::vector<std::shared_ptr<const chat_message>>;

struct stored_response {
  std::string id;
  std::string tenant;
  shared_conversation conversation; // input and output, without the instructions
  std::string json;                 // the response object as it was answered
};

struct response_bounds {
  std::size_t responses = 0;
  std::size_t bytes = 0;
};

// Whether something was done, or will have been when the keeper is told.
enum class store_answer { unknown, done, under_way };

class response_store {
public:
  // `records`: may be null; then the responses go with the process.
  explicit response_store(response_bounds bounds, std::shared_ptr<record_store> records = nullptr)
      : bounds_(bounds), records_(std::move(records)) {}
  ~response_store();

  // Takes in what the records hold, and erases there what is of no use: before anything else is asked. Their faults are logged.
  void restore(const log_sink& log);

  // done or under_way; `keeper` is called for the latter alone, from any thread.
  store_answer put(stored_response response, written_fn keeper = nullptr);
  // unknown, done or under_way; it is gone here at once.
  store_answer erase(std::string_view id, std::string_view tenant, written_fn keeper = nullptr);
  std::optional<shared_conversation> conversation(std::string_view id, std::string_view tenant) const;
  std::optional<std::string> json(std::string_view id, std::string_view tenant) const;
  bool drop_oldest(); // false where there is none
  std::size_t size() const;
  std::size_t bytes() const;
  std::uint64_t failures() const; // writes that the records refused

private:
  struct entry {
    stored_response response;
    bool visible = false;
  };
  struct holder {
    std::size_t responses = 0; // that hold the message
    std::uint64_t number = 0;  // its record's
    bool recorded = false;     // for certain
  };
  using entries = std::map<std::uint64_t, entry>; // by number: the oldest first
  using changes = std::vector<record_change>;

  const stored_response* find(std::string_view id, std::string_view tenant) const;
  void enter(std::uint64_t number, stored_response response);
  void show(std::uint64_t number);
  void drop(entries::iterator it, changes& erased);
  void keep_bounds(changes& erased);
  changes records_of(std::uint64_t number) const;
  void write(changes wanted, written_fn then);
  void on_put(std::uint64_t number, const result<void>& outcome);

  const response_bounds bounds_;
  const std::shared_ptr<record_store> records_;
  mutable std::mutex mutex_;
  std::condition_variable written_;
  entries entries_;
  std::unordered_map<std::string, std::uint64_t> by_id_; // the visible ones
  std::unordered_map<const chat_message*, holder> holders_;
  std::uint64_t next_number_ = 1; // of responses and messages
  std::size_t bytes_ = 0;         // responses, and each message once
  std::size_t writing_ = 0;       // writes that the records have not answered
  changes owed_;                  // erasures that the records refused; the next write tries them again
  std::uint64_t failures_ = 0;
};

} // namespace troupe
