// Records in one SQLite file. The only folder that knows SQLite.
//
// Owns the database and the thread that writes to it. Promises, besides record_store's: a file that is damaged or of another
// version is set aside (NAME.damaged, one of them) with a logged line, and an empty one takes its place; every record carries a
// checksum, and one that fails it is left out and erased, with a logged line; what was queued is written before the destructor
// returns. Limits: limits::records_waiting_max and records_waiting_bytes_max queued (queue_full), `bytes_max` of the file
// (io_failed). The log is written ahead (WAL) and handed to the kernel at each commit, not forced to the disk: a killed process
// loses nothing, a power failure may lose the last commits, never more. Any thread.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>

#include "base/log.hpp"
#include "base/record_store.hpp"
#include "config/limits.hpp"

namespace troupe {

struct sqlite_options {
  std::filesystem::path path;
  std::uint64_t bytes_max = limits::records_bytes_max;
  log_sink log;
};

// io_failed where the file can be neither opened nor made.
result<std::unique_ptr<record_store>> open_sqlite_records(sqlite_options options);

} // namespace troupe
