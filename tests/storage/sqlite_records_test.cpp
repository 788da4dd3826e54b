// Records on disk: transactions, damage of every kind, bounds, and a process killed while it writes.
#include <doctest/doctest.h>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <future>
#include <map>

#include "base/random.hpp"
#include "base/record_bytes.hpp"
#include "storage/sqlite_records.hpp"
#include "tests/support/scratch_folder.hpp"
#include "tests/support/test_seeds.hpp"

using namespace troupe;
using troupe::testing::scratch_folder;

namespace {

using table_map = std::map<std::string, std::string>;

std::unique_ptr<record_store> open(const std::filesystem::path& path, std::vector<std::string>* log = nullptr,
                                   std::uint64_t bytes_max = limits::records_bytes_max) {
  auto opened = open_sqlite_records({path, bytes_max, [log](log_level, std::string_view line) {
                                       if (log)
                                         log->emplace_back(line);
                                     }});
  REQUIRE(opened);
  return std::move(*opened);
}

result<void> write(record_store& records, std::vector<record_change> changes) {
  std::promise<result<void>> ended;
  records.write(std::move(changes), [&](result<void> outcome) { ended.set_value(std::move(outcome)); });
  return ended.get_future().get();
}

table_map all_of(record_store& records, std::string_view table) {
  table_map out;
  REQUIRE(records.read(table, [&](std::string_view key, std::string_view value) { out.emplace(key, value); }));
  return out;
}

void overwrite(const std::filesystem::path& path, std::uint64_t at, std::string_view bytes) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(at));
  file << bytes;
}

std::string contents(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

} // namespace

TEST_CASE("records are there after their store was opened again, in the order of their keys") {
  const scratch_folder scratch;
  const std::string zeros("\0a\0", 3);
  {
    auto records = open(scratch / "r");
    CHECK(write(*records, {{"t", record_key(300), "three hundred"}, {"t", record_key(2), zeros}, {"u", "k", ""}}));
    CHECK(write(*records,
                {{"t", record_key(2), "two"}, {"u", "gone", "x"}, {"u", "gone", std::nullopt}, {"u", "never", std::nullopt}}));
  }
  auto records = open(scratch / "r");
  std::vector<std::string> keys, values;
  REQUIRE(records->read("t", [&](std::string_view key, std::string_view value) {
    keys.emplace_back(key);
    values.emplace_back(value);
  }));
  CHECK(keys == std::vector<std::string>{record_key(2), record_key(300)});
  CHECK(values == std::vector<std::string>{"two", "three hundred"});
  CHECK(all_of(*records, "u") == table_map{{"k", ""}});
  CHECK(all_of(*records, "other").empty());
  struct stat about {};
  REQUIRE(stat((scratch / "r").c_str(), &about) == 0);
  CHECK((about.st_mode & 0777) == 0600);
}

TEST_CASE("a table is erased as a whole, within its transaction") {
  const scratch_folder scratch;
  auto records = open(scratch / "r");
  CHECK(write(*records, {{"t", "a", "x"}, {"t", "b", "y"}, {"u", "a", "z"}}));
  CHECK(write(*records, {{"t", "c", "x"}, record_change::erase_table("t"), {"t", "d", "x"}}));
  CHECK(all_of(*records, "t") == table_map{{"d", "x"}});
  CHECK(all_of(*records, "u") == table_map{{"a", "z"}});
}

TEST_CASE("what was queued is written before the store ends, in order") {
  const scratch_folder scratch;
  std::atomic<int> told{0};
  {
    auto records = open(scratch / "r");
    for (int i = 0; i < 500; ++i)
      records->write({{"t", "last", std::to_string(i)}, {"t", std::to_string(i), "x"}},
                     [&](const result<void>& r) { told += r ? 1 : 0; });
  }
  CHECK(told == 500);
  const auto found = all_of(*open(scratch / "r"), "t");
  CHECK(found.size() == 501);
  CHECK(found.at("last") == "499");
}

TEST_CASE("a full file fails the transaction that does not fit, whole, and serves on") {
  const scratch_folder scratch;
  auto records = open(scratch / "r", nullptr, 256 << 10);
  REQUIRE(write(*records, {{"t", "small", "x"}}));
  const auto full = write(*records, {{"t", "part", "x"}, {"t", "large", std::string(1 << 20, 'x')}});
  REQUIRE_FALSE(full);
  CHECK(full.fault().code == errc::io_failed);
  CHECK(full.fault().message.find("full") != std::string::npos);
  CHECK(all_of(*records, "t") == table_map{{"small", "x"}});
  CHECK(write(*records, {{"t", "next", "y"}}));
  CHECK(all_of(*records, "t").size() == 2);
}

TEST_CASE("a writer that is too far behind is not given more") {
  const scratch_folder scratch;
  auto records = open(scratch / "r");
  // The thread that writes is held in the first transaction's end.
  std::promise<void> held, go;
  records->write({{"t", "first", "x"}}, [&](const result<void>&) {
    held.set_value();
    go.get_future().wait();
  });
  held.get_future().wait();
  int refused = 0;
  errc code = errc::ok;
  for (std::size_t i = 0; i < limits::records_waiting_max + 3; ++i)
    records->write({{"t", std::to_string(i), "x"}}, [&](const result<void>& r) {
      if (!r) {
        ++refused; // from within write(), on this thread
        code = r.fault().code;
      }
    });
  CHECK(refused == 3);
  CHECK(code == errc::queue_full);
  go.set_value();
  records.reset(); // writes what waits
  CHECK(all_of(*open(scratch / "r"), "t").size() == limits::records_waiting_max + 1);
}

TEST_CASE("a file that is no database is set aside, and the store begins with none") {
  const scratch_folder scratch;
  std::ofstream(scratch / "r") << std::string(10'000, '#');
  std::vector<std::string> log;
  auto records = open(scratch / "r", &log);
  REQUIRE(log.size() == 1);
  CHECK(log[0].find("damaged") != std::string::npos);
  CHECK(all_of(*records, "t").empty());
  CHECK(write(*records, {{"t", "k", "v"}}));
  CHECK(contents(scratch / "r.damaged") == std::string(10'000, '#'));
}

TEST_CASE("a database of another version is set aside") {
  const scratch_folder scratch;
  { CHECK(write(*open(scratch / "r"), {{"t", "k", "v"}})); }
  overwrite(scratch / "r", 60, std::string("\0\0\0\x63", 4)); // the header's user version
  std::vector<std::string> log;
  CHECK(all_of(*open(scratch / "r", &log), "t").empty());
  REQUIRE(!log.empty());
  CHECK(log[0].find("version is 99") != std::string::npos);
}

TEST_CASE("a folder that can't be written is a clear error") {
  const scratch_folder scratch;
  const auto opened = open_sqlite_records({scratch / "missing/r", limits::records_bytes_max, {}});
  REQUIRE_FALSE(opened);
  CHECK(opened.fault().code == errc::io_failed);
}

TEST_CASE("an altered value is never read") {
  const scratch_folder scratch;
  { CHECK(write(*open(scratch / "r"), {{"t", "a", "the first value"}, {"t", "b", "the second value"}})); }
  const auto at = contents(scratch / "r").find("second value");
  REQUIRE(at != std::string::npos);
  overwrite(scratch / "r", at, "secund");
  std::vector<std::string> log;
  {
    auto records = open(scratch / "r", &log);
    CHECK(all_of(*records, "t") == table_map{{"a", "the first value"}});
    REQUIRE(log.size() == 1);
    CHECK(log[0].find("1 damaged ones of 't'") != std::string::npos);
  }
  log.clear();
  CHECK(all_of(*open(scratch / "r", &log), "t").size() == 1);
  CHECK(log.empty()); // erased
}

TEST_CASE("whatever part of the file is overwritten, cut or lost, what is read was written") {
  for (const auto seed : testing::test_seeds(40)) {
    CAPTURE(seed);
    std::uint64_t drawn = 0;
    const auto draw = [&](std::uint64_t below) { return random_at(seed, drawn++) % below; };
    const scratch_folder scratch;
    table_map written;
    {
      auto records = open(scratch / "r");
      for (int i = 0; i < 60; ++i) {
        const auto key = std::to_string(draw(40));
        written[key] = std::string(draw(3000), static_cast<char>('a' + draw(26)));
        CHECK(write(*records, {{"t", key, written[key]}}));
      }
    }
    const auto size = std::filesystem::file_size(scratch / "r");
    if (draw(3) == 0) {
      std::filesystem::resize_file(scratch / "r", draw(size));
    } else {
      const auto at = draw(size);
      overwrite(scratch / "r", at,
                std::string(1 + draw(std::min<std::uint64_t>(size - at, 4096)), static_cast<char>(draw(256))));
    }
    auto records = open(scratch / "r");
    table_map found;
    (void)records->read("t", [&](std::string_view key, std::string_view value) { found.emplace(key, value); });
    for (const auto& [key, value] : found)
      CHECK((written.count(key) == 1 && written[key] == value));
    CHECK(write(*records, {{"t", "after", "x"}}));
  }
}

TEST_CASE("a process killed while it writes loses nothing that it was told of") {
  for (const auto seed : testing::test_seeds(8)) {
    CAPTURE(seed);
    const scratch_folder scratch;
    int told[2];
    REQUIRE(pipe(told) == 0);
    const pid_t child = fork();
    if (child == 0) { // writes pairs until it is killed, and tells of each that is there
      auto opened = open_sqlite_records({scratch / "r", limits::records_bytes_max, {}});
      for (std::uint32_t i = 0; opened;) {
        std::atomic<bool> refused{false}; // by write() itself, as too much waits
        std::promise<void> ended;
        (*opened)->write({{"a", record_key(i), std::string(i % 700, 'a')}, {"b", record_key(i), std::string(i % 900, 'b')}},
                         [&, i](const result<void>& r) {
                           if (r)
                             (void)!::write(told[1], &i, sizeof i);
                           refused = !r;
                           ended.set_value();
                         });
        ended.get_future().wait();
        i += refused ? 0 : 1;
      }
      _exit(1);
    }
    close(told[1]);
    const auto until = 20 + random_at(seed, 0) % 400;
    std::uint32_t last = 0;
    for (std::uint64_t n = 0; n < until; ++n)
      REQUIRE(::read(told[0], &last, sizeof last) == sizeof last);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    for (std::uint32_t more = 0; ::read(told[0], &more, sizeof more) == sizeof more;)
      last = more;
    close(told[0]);
    auto records = open(scratch / "r");
    const auto a = all_of(*records, "a"), b = all_of(*records, "b");
    CHECK(a.size() == b.size()); // no half of a transaction
    CHECK(a.size() > last);
    for (std::uint32_t i = 0; i <= last; ++i) {
      CHECK(a.at(record_key(i)) == std::string(i % 700, 'a'));
      CHECK(b.at(record_key(i)) == std::string(i % 900, 'b'));
    }
  }
}
