// The tier's file on a real disk: what was written comes back, and whatever happened to it meanwhile is told.
#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>

#include <sys/resource.h>
#include <unistd.h>

#include "base/random.hpp"
#include "memory/tier_file.hpp"
#include "memory/tier_store.hpp"

using namespace troupe;
namespace fs = std::filesystem;

namespace {

struct temp_folder {
  temp_folder() : path(fs::temp_directory_path() / ("troupe-tier-" + std::to_string(getpid()))) { fs::create_directory(path); }
  ~temp_folder() { fs::remove_all(path); }
  fs::path path;
};

constexpr std::size_t page_bytes = 10'000; // no multiple of a block
const tier_file_shape shape{page_bytes, 8, "a model"};

std::vector<std::byte> page_of(std::uint64_t seed) {
  std::vector<std::byte> out(page_bytes);
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<std::byte>(random_at(seed, i));
  return out;
}

const prefix_hash one{1, 2}, other{3, 4};

// Changes one byte of the file.
void spoil(const fs::path& path, std::uint64_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  const char byte = static_cast<char>(file.get() ^ 1);
  file.seekp(static_cast<std::streamoff>(at));
  file.put(byte);
}

std::uint64_t slot_at(std::uint64_t slot) {
  return 4096 + slot * tier_file::slot_bytes(page_bytes);
}

} // namespace

TEST_CASE("a slot gives back what was written to it under its name, and nothing under another") {
  temp_folder folder;
  auto file = tier_file::create(folder.path, shape).value();
  const auto page = page_of(1), second = page_of(2);
  REQUIRE(file.write(3, one, page));
  REQUIRE(file.write(5, other, second));
  std::vector<std::byte> read(page_bytes);
  CHECK(file.read(3, one, read) == move_end::done);
  CHECK(read == page);
  CHECK(file.read(5, other, read) == move_end::done);
  CHECK(read == second);
  CHECK(file.read(3, other, read) == move_end::damaged);
  REQUIRE(file.write(3, other, second));
  CHECK(file.read(3, one, read) == move_end::damaged);
  CHECK(file.read(4, one, read) != move_end::done);   // never written
  CHECK(file.read(7, one, read) == move_end::failed); // beyond the file's end
}

TEST_CASE("a file without a name leaves nothing in its folder") {
  temp_folder folder;
  auto file = tier_file::create(folder.path, shape).value();
  REQUIRE(file.write(0, one, page_of(1)));
  CHECK(fs::is_empty(folder.path));
}

TEST_CASE("any altered byte of a slot is found: header, page, and a slot that stands in another's place") {
  temp_folder folder;
  const auto path = folder.path / "tier";
  const auto page = page_of(1);
  std::vector<std::byte> read(page_bytes);
  auto file = tier_file::create_named(path, shape).value();
  for (const std::uint64_t at : {0u, 15u, 16u, 31u, 32u, 64u, 5000u, 64u + 9999u}) {
    CAPTURE(at);
    REQUIRE(file.write(2, one, page));
    CHECK(file.read(2, one, read) == move_end::done);
    spoil(path, slot_at(2) + at);
    CHECK(file.read(2, one, read) == move_end::damaged);
  }
  REQUIRE(file.write(2, one, page));
  std::vector<char> whole(tier_file::slot_bytes(page_bytes));
  {
    std::fstream raw(path, std::ios::in | std::ios::out | std::ios::binary);
    raw.seekg(static_cast<std::streamoff>(slot_at(2)));
    raw.read(whole.data(), 64 + page_bytes);
    raw.seekp(static_cast<std::streamoff>(slot_at(6)));
    raw.write(whole.data(), 64 + page_bytes);
  }
  CHECK(file.read(6, one, read) == move_end::damaged);
}

TEST_CASE("a write that was torn anywhere is found") {
  temp_folder folder;
  const auto path = folder.path / "tier";
  const auto before = page_of(1), after = page_of(2);
  std::vector<std::byte> read(page_bytes);
  auto file = tier_file::create_named(path, shape).value();
  for (const std::size_t reached : {1u, 16u, 32u, 64u, 100u, 4096u, 10'000u, 10'063u}) {
    CAPTURE(reached);
    REQUIRE(file.write(1, one, after));
    std::vector<char> written(64 + page_bytes);
    std::ifstream(path, std::ios::binary).seekg(static_cast<std::streamoff>(slot_at(1))).read(written.data(), 64 + page_bytes);
    REQUIRE(file.write(1, other, before));
    std::fstream raw(path, std::ios::in | std::ios::out | std::ios::binary); // the first bytes of the later write
    raw.seekp(static_cast<std::streamoff>(slot_at(1)));
    raw.write(written.data(), static_cast<std::streamsize>(reached));
    raw.close();
    CHECK(file.read(1, one, read) == move_end::damaged);
    CHECK(file.read(1, other, read) == move_end::damaged);
  }
}

TEST_CASE("a file is opened again only with the same version, size and identity and a whole header") {
  temp_folder folder;
  const auto path = folder.path / "tier";
  CHECK(tier_file::open_named(path, shape).fault().code == errc::not_found);
  const auto page = page_of(1);
  REQUIRE(tier_file::create_named(path, shape).value().write(2, one, page));
  std::vector<std::byte> read(page_bytes);
  CHECK(tier_file::open_named(path, shape).value().read(2, one, read) == move_end::done);
  CHECK(read == page);
  const auto refused = [&](tier_file_shape wanted) {
    const auto opened = tier_file::open_named(path, std::move(wanted));
    REQUIRE(!opened);
    CHECK(opened.fault().code == errc::unsupported);
    return opened.fault().message;
  };
  CHECK(refused({page_bytes, 8, "another model"}).find("another model or backend") != std::string::npos);
  CHECK(refused({page_bytes, 9, "a model"}).find("another size") != std::string::npos);
  CHECK(refused({page_bytes + 1, 8, "a model"}).find("another size") != std::string::npos);
  for (const std::uint64_t at : {0u, 8u, 20u, 40u, 4090u}) {
    CAPTURE(at);
    spoil(path, at);
    CHECK(!refused(shape).empty());
    spoil(path, at);
    CHECK(tier_file::open_named(path, shape));
  }
  fs::resize_file(path, 100);
  CHECK(refused(shape).find("no whole header") != std::string::npos);
}

TEST_CASE("a folder that is not there, a shape of nothing and an endless identity are errors") {
  CHECK(tier_file::create("/nowhere/at/all", shape).fault().code == errc::io_failed);
  CHECK(tier_file::create("/tmp", {0, 8, ""}).fault().code == errc::invalid_argument);
  CHECK(tier_file::create("/tmp", {4096, 0, ""}).fault().code == errc::invalid_argument);
  CHECK(tier_file::create("/tmp", {4096, 8, std::string(4000, 'x')}).fault().code == errc::invalid_argument);
}

TEST_CASE("when the disk takes no more, writes fail, and what was written before is still there") {
  temp_folder folder;
  rlimit former{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &former) == 0);
  auto* handler = std::signal(SIGXFSZ, SIG_IGN);
  auto store = tier_store::create({page_bytes, {1, 8}, folder.path, "a model"}).value();
  rlimit small = former;
  small.rlim_cur = slot_at(2) + 5000; // the third slot is cut in its middle
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  std::vector<moved_page> ends;
  for (std::uint32_t slot = 0; slot < 4; ++slot)
    ends.push_back(store->store({move_way::down, 0, {slot, 0}, {std::nullopt, slot}, {}}, page_of(slot)));
  REQUIRE(setrlimit(RLIMIT_FSIZE, &former) == 0);
  std::signal(SIGXFSZ, handler);
  CHECK(ends[0].end == move_end::done);
  CHECK(ends[1].holds[1]);
  for (std::size_t i : {2u, 3u}) {
    CHECK(ends[i].end == move_end::failed);
    CHECK(!ends[i].holds[1]);
  }
  CHECK(store->last_fault().find("cannot write") != std::string::npos);
  std::vector<std::byte> read(page_bytes);
  for (std::uint32_t slot = 0; slot < 4; ++slot) {
    const auto how = store->load({move_way::up, 0, {slot, 0}, {std::nullopt, slot}, tier_level::disk}, read);
    CHECK((how.end == move_end::done) == (slot < 2));
    if (slot < 2)
      CHECK(read == page_of(slot));
  }
}

TEST_CASE("a page read from disk is put into the host's memory, too, and both give the same") {
  temp_folder folder;
  auto store = tier_store::create({page_bytes, {2, 4}, folder.path, "a model"}).value();
  const auto page = page_of(9);
  CHECK(store->store({move_way::down, 0, one, {std::nullopt, 3u}, {}}, page).end == move_end::done);
  std::vector<std::byte> read(page_bytes);
  const auto up = store->load({move_way::up, 0, one, {1u, 3u}, tier_level::disk}, read);
  CHECK(up.end == move_end::done);
  CHECK(up.holds == by_level<bool>{true, true});
  CHECK(read == page);
  std::ranges::fill(read, std::byte{0});
  CHECK(store->load({move_way::up, 0, one, {1u, std::nullopt}, tier_level::host}, read).end == move_end::done);
  CHECK(read == page);
  CHECK(store->load({move_way::up, 0, other, {1u, std::nullopt}, tier_level::host}, read).end == move_end::damaged);
}
