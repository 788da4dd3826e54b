#include "storage/sqlite_records.hpp"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

#include "base/keyed_hash.hpp"
#include "base/random.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr int schema_version = 1;
constexpr std::uint64_t page_bytes = 4096;
constexpr std::uint64_t log_bytes_max = 64u << 20; // the write-ahead log is cut to this when it was moved into the file

struct close_database {
  void operator()(sqlite3* database) const noexcept { sqlite3_close(database); }
};
struct end_statement {
  void operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }
};
using database_ptr = std::unique_ptr<sqlite3, close_database>;
using statement_ptr = std::unique_ptr<sqlite3_stmt, end_statement>;

error fault_of(sqlite3* database, std::string_view doing) {
  return fail(errc::io_failed, "records: " + std::string(doing) + ": " + sqlite3_errmsg(database));
}

result<void> execute(sqlite3* database, const std::string& sql) {
  if (sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
    return fault_of(database, sql.substr(0, sql.find('(')));
  return {};
}

result<statement_ptr> prepare(sqlite3* database, const char* sql) {
  sqlite3_stmt* made = nullptr;
  if (sqlite3_prepare_v2(database, sql, -1, &made, nullptr) != SQLITE_OK)
    return fault_of(database, sql);
  return statement_ptr(made);
}

// The first column of the first row.
result<std::string> ask(sqlite3* database, const char* sql) {
  const auto statement = prepare(database, sql);
  if (!statement)
    return statement.fault();
  if (sqlite3_step(statement->get()) != SQLITE_ROW)
    return fault_of(database, sql);
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement->get(), 0));
  return std::string(text ? text : "");
}

void bind_bytes(sqlite3_stmt* statement, int column, std::string_view bytes) {
  // A null pointer would bind NULL.
  sqlite3_bind_blob64(statement, column, bytes.empty() ? "" : bytes.data(), bytes.size(), SQLITE_STATIC);
}

std::string_view bytes_of(sqlite3_stmt* statement, int column) {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement, column));
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, column));
  return bytes ? std::string_view(bytes, size) : std::string_view();
}

std::size_t bytes_of(const std::vector<record_change>& changes) {
  std::size_t bytes = 0;
  for (const auto& change : changes)
    bytes += sizeof change + change.table.size() + change.key.size() + (change.value ? change.value->size() : 0);
  return bytes;
}

// The database file itself, its log and the log's index.
constexpr const char* suffixes[] = {"", "-wal", "-shm"};

class sqlite_records final : public record_store {
public:
  sqlite_records(database_ptr database, log_sink log) : database_(std::move(database)), log_(std::move(log)) {}
  ~sqlite_records() override {
    {
      const std::lock_guard lock(queue_mutex_);
      ending_ = true;
    }
    changed_.notify_one();
    if (writer_.joinable())
      writer_.join();
  }

  result<void> start() {
    auto put = prepare(database_.get(), "INSERT OR REPLACE INTO records (name, key, value, sum) VALUES (?1, ?2, ?3, ?4)");
    auto erase = prepare(database_.get(), "DELETE FROM records WHERE name = ?1 AND key = ?2");
    auto erase_table = prepare(database_.get(), "DELETE FROM records WHERE name = ?1");
    for (auto* made : {&put, &erase, &erase_table})
      if (!*made)
        return made->fault();
    put_ = std::move(*put);
    erase_ = std::move(*erase);
    erase_table_ = std::move(*erase_table);
    writer_ = std::thread([this] { work(); });
    return {};
  }

  void write(std::vector<record_change> changes, written_fn done) override {
    const std::size_t bytes = bytes_of(changes);
    {
      const std::lock_guard lock(queue_mutex_);
      if (queue_.size() < limits::records_waiting_max && waiting_bytes_ + bytes <= limits::records_waiting_bytes_max) {
        waiting_bytes_ += bytes;
        queue_.push_back({std::move(changes), std::move(done), bytes});
        changed_.notify_one();
        return;
      }
    }
    if (done)
      done(fail(errc::queue_full, "records: too much waits to be written to disk; try again later"));
  }

  result<void> read(std::string_view table,
                    const std::function<void(std::string_view key, std::string_view value)>& each) override;

private:
  struct transaction {
    std::vector<record_change> changes;
    written_fn done;
    std::size_t bytes = 0;
  };

  void work();
  result<void> commit(const std::vector<record_change>& changes);
  result<void> apply(const record_change& change);
  std::int64_t checksum(std::string_view table, std::string_view key, std::string_view value) const;

  std::mutex database_mutex_;
  database_ptr database_;
  statement_ptr put_, erase_, erase_table_;
  const log_sink log_;
  // No secret: chance alone damages a record.
  const hash_key key_{[n = std::uint64_t{0}]() mutable { return random_at(schema_version, n++); }};

  std::mutex queue_mutex_;
  std::condition_variable changed_;
  std::deque<transaction> queue_;
  std::size_t waiting_bytes_ = 0;
  bool ending_ = false;
  std::string last_fault_; // the writer's
  std::thread writer_;
};

void sqlite_records::work() {
  std::unique_lock lock(queue_mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || !queue_.empty(); });
    if (queue_.empty())
      return;
    transaction next = std::move(queue_.front());
    queue_.pop_front();
    waiting_bytes_ -= next.bytes;
    lock.unlock();
    auto outcome = commit(next.changes);
    if (const std::string fault = outcome ? "" : outcome.fault().message; fault != last_fault_) {
      last_fault_ = fault; // of many alike the first is told
      if (!fault.empty())
        log_to(log_, log_level::error, fault);
    }
    if (next.done)
      next.done(std::move(outcome));
    next = {};
    lock.lock();
  }
}

result<void> sqlite_records::commit(const std::vector<record_change>& changes) {
  const std::lock_guard lock(database_mutex_);
  auto done = execute(database_.get(), "BEGIN IMMEDIATE");
  for (auto change = changes.begin(); done && change != changes.end(); ++change)
    done = apply(*change);
  if (done)
    done = execute(database_.get(), "COMMIT");
  if (!done && !sqlite3_get_autocommit(database_.get()))
    (void)execute(database_.get(), "ROLLBACK");
  return done;
}

result<void> sqlite_records::apply(const record_change& change) {
  sqlite3_stmt* const statement = change.whole_table ? erase_table_.get() : change.value ? put_.get() : erase_.get();
  bind_bytes(statement, 1, change.table);
  if (!change.whole_table)
    bind_bytes(statement, 2, change.key);
  if (change.value) {
    bind_bytes(statement, 3, *change.value);
    sqlite3_bind_int64(statement, 4, checksum(change.table, change.key, *change.value));
  }
  result<void> done;
  if (sqlite3_step(statement) != SQLITE_DONE)
    done = fault_of(database_.get(), "a record could not be written");
  sqlite3_reset(statement);
  sqlite3_clear_bindings(statement);
  return done;
}

result<void> sqlite_records::read(std::string_view table,
                                  const std::function<void(std::string_view key, std::string_view value)>& each) {
  std::vector<record_change> damaged;
  const std::lock_guard lock(database_mutex_);
  const auto statement = prepare(database_.get(), "SELECT key, value, sum FROM records WHERE name = ?1 ORDER BY key");
  if (!statement)
    return statement.fault();
  bind_bytes(statement->get(), 1, table);
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(statement->get())) == SQLITE_ROW) {
    const auto key = bytes_of(statement->get(), 0), value = bytes_of(statement->get(), 1);
    if (sqlite3_column_int64(statement->get(), 2) == checksum(table, key, value))
      each(key, value);
    else
      damaged.push_back({std::string(table), std::string(key), std::nullopt});
  }
  if (!damaged.empty()) {
    log_to(log_, log_level::warning,
           "records: " + std::to_string(damaged.size()) + " damaged ones of '" + std::string(table) +
               "' are left out and erased");
    write(std::move(damaged), nullptr);
  }
  if (code != SQLITE_DONE)
    return fault_of(database_.get(), "reading '" + std::string(table) + "'");
  return {};
}

std::int64_t sqlite_records::checksum(std::string_view table, std::string_view key, std::string_view value) const {
  keyed_hasher hasher(key_);
  hasher.add(table);
  hasher.add(key);
  hasher.add(value);
  const auto sum = hasher.value();
  return static_cast<std::int64_t>(mix64(sum.a) ^ sum.b);
}

// What opening found wrong: a damaged file may be set aside, what the system refuses may not.
struct open_fault {
  bool damaged = false;
  std::string why;
};

bool speaks_of_damage(sqlite3* database) {
  const int code = sqlite3_errcode(database) & 255;
  return code == SQLITE_CORRUPT || code == SQLITE_NOTADB || code == SQLITE_FORMAT;
}

// Opens the file, which may be empty, looks it over and makes what is missing.
database_ptr open_database(const sqlite_options& options, open_fault& fault) {
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(options.path.c_str(), &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  database_ptr database(opened);
  if (code != SQLITE_OK) {
    fault.why = opened ? sqlite3_errmsg(opened) : "no memory";
    return nullptr;
  }
  const auto wrong = [&](std::string why, bool damaged) {
    fault = {damaged, std::move(why)};
    return nullptr;
  };
  // One process uses the folder, so the log's index may live in its memory.
  for (const std::string& pragma :
       {std::string("PRAGMA locking_mode=EXCLUSIVE"), "PRAGMA page_size=" + std::to_string(page_bytes),
        std::string("PRAGMA journal_mode=WAL"), std::string("PRAGMA synchronous=NORMAL"),
        "PRAGMA journal_size_limit=" + std::to_string(log_bytes_max),
        "PRAGMA max_page_count=" + std::to_string(options.bytes_max / page_bytes)})
    if (const auto done = execute(database.get(), pragma); !done)
      return wrong(done.fault().message, speaks_of_damage(database.get()));
  const auto version = ask(database.get(), "PRAGMA user_version");
  if (!version)
    return wrong(version.fault().message, speaks_of_damage(database.get()));
  const auto tables = ask(database.get(), "SELECT count(*) FROM sqlite_schema");
  if (!tables)
    return wrong(tables.fault().message, speaks_of_damage(database.get()));
  if (*tables != "0" && *version != std::to_string(schema_version))
    return wrong("its version is " + *version + ", this program's " + std::to_string(schema_version), true);
  if (*tables == "0") {
    const auto made = execute(database.get(), "BEGIN; CREATE TABLE records (name BLOB NOT NULL, key BLOB NOT NULL, "
                                              "value BLOB NOT NULL, sum INTEGER NOT NULL, PRIMARY KEY (name, key));"
                                              "PRAGMA user_version=" +
                                                  std::to_string(schema_version) + "; COMMIT");
    return made ? std::move(database) : wrong(made.fault().message, false);
  }
  auto check = ask(database.get(), "PRAGMA quick_check(1)");
  if (!check || *check != "ok") {
    std::string why = check ? *check : check.fault().message;
    std::replace(why.begin(), why.end(), '\n', ' ');
    return wrong(std::move(why), true);
  }
  return database;
}

void set_aside(const fs::path& path) {
  std::error_code ignored;
  for (const char* suffix : suffixes) {
    fs::remove(path.string() + ".damaged" + suffix, ignored);
    fs::rename(path.string() + suffix, path.string() + ".damaged" + suffix, ignored);
  }
}

// Made by us, so that nobody else may read it.
result<void> make_file(const fs::path& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0)
    return fail(errc::io_failed, path.string() + ": cannot be opened: " + std::strerror(errno));
  close(fd);
  return {};
}

} // namespace

result<std::unique_ptr<record_store>> open_sqlite_records(sqlite_options options) {
  for (const bool last : {false, true}) {
    if (const auto made = make_file(options.path); !made)
      return made.fault();
    open_fault fault;
    auto database = open_database(options, fault);
    if (database) {
      auto records = std::make_unique<sqlite_records>(std::move(database), options.log);
      if (const auto started = records->start(); started)
        return std::unique_ptr<record_store>(std::move(records));
      else
        fault = {true, started.fault().message}; // our table is not as we make it
    }
    if (last || !fault.damaged)
      return fail(errc::io_failed, options.path.string() + ": cannot be used: " + fault.why);
    log_to(options.log, log_level::error,
           options.path.string() + ": the records are damaged (" + fault.why + "); set aside as " +
               options.path.filename().string() + ".damaged, starting with none");
    set_aside(options.path);
  }
  return fail(errc::internal, "records: unreachable");
}

} // namespace troupe
