// Stored responses as records, and back. A message is a record of its own, named by its number in the responses that hold it.
// Plain functions.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.hpp"
#include "base/record_bytes.hpp"
#include "io/response_store.hpp"

namespace troupe {

inline constexpr std::string_view response_table = "responses"; // by number
inline constexpr std::string_view message_table = "messages";   // by number

struct response_record {
  std::string id;
  std::string tenant;
  std::string json;
  std::vector<std::uint64_t> messages;
};

std::string response_bytes(const response_record& response);
std::string message_bytes(const chat_message& message);

struct read_records {
  std::map<std::uint64_t, std::shared_ptr<const chat_message>> messages;
  std::map<std::uint64_t, stored_response> responses;
  std::vector<std::uint64_t> damaged; // responses that can't be read, or of which a message is missing
};

// What can be read; the rest is told to the log.
read_records read_responses(record_store& records, const log_sink& log);

} // namespace troupe
