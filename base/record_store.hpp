// Records that outlive the process: named tables of key -> bytes, changed in transactions. What uses them sees this interface;
// storage/ has the implementation, and app/ brings both together.
//
// Promises of every store: a transaction is there as a whole or not at all; once its `done` was told of success it is there
// after the process was killed at any moment; a record is read as it was written or not at all. Any thread.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace troupe {

// How a write ended. Called once, from the store's thread or from within write(); it must not block for long.
using written_fn = std::function<void(result<void>)>;

struct record_change {
  std::string table;
  std::string key;
  std::optional<std::string> value; // absent: the record is erased, where there is one
  bool whole_table = false;         // every record of the table is erased, whatever the key

  static record_change erase_table(std::string name) { return {std::move(name), {}, std::nullopt, true}; }
};

class record_store {
public:
  virtual ~record_store() = default;
  // Queues one transaction and returns. Fails with queue_full where too much waits, with io_failed where the disk refuses
  // (it is full); what is stored already stays as it is.
  virtual void write(std::vector<record_change> changes, written_fn done) = 0;
  // Every record of a table in the order of its keys' bytes. Waits for the disk: for the start of the process.
  virtual result<void> read(std::string_view table,
                            const std::function<void(std::string_view key, std::string_view value)>& each) = 0;
};

} // namespace troupe
