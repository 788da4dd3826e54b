// The state folder: one process at a time, for its owner alone, one secret for ever.
#include <doctest/doctest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "storage/state_folder.hpp"
#include "tests/support/scratch_folder.hpp"

using namespace troupe;
using troupe::testing::scratch_folder;

namespace {

int mode_of(const std::filesystem::path& path) {
  struct stat about {};
  REQUIRE(stat(path.c_str(), &about) == 0);
  return static_cast<int>(about.st_mode & 07777);
}

} // namespace

TEST_CASE("a state folder is made with its parents, for its owner alone") {
  const scratch_folder scratch;
  const auto path = scratch / "a/b/state";
  const auto folder = state_folder::open(path);
  REQUIRE(folder);
  CHECK(folder->path() == path);
  CHECK(mode_of(path) == 0700);
  REQUIRE(folder->secret());
  CHECK(mode_of(path / "secret") == 0600);
  CHECK(mode_of(path / "lock") == 0600);
}

TEST_CASE("a state folder serves one at a time and says whose turn it is") {
  const scratch_folder scratch;
  {
    const auto first = state_folder::open(scratch / "state");
    REQUIRE(first);
    const auto second = state_folder::open(scratch / "state");
    REQUIRE_FALSE(second);
    CHECK(second.fault().code == errc::unavailable);
    CHECK(second.fault().message.find("another troupe process") != std::string::npos);
  }
  CHECK(state_folder::open(scratch / "state"));
}

TEST_CASE("the secret stays the same, and one of a wrong size is drawn again") {
  const scratch_folder scratch;
  const auto folder = state_folder::open(scratch / "state");
  REQUIRE(folder);
  const auto drawn = folder->secret();
  REQUIRE(drawn);
  CHECK(*folder->secret() == *drawn);
  std::filesystem::resize_file(scratch / "state/secret", 3);
  const auto again = folder->secret();
  REQUIRE(again);
  CHECK(*again != *drawn);
  CHECK(*folder->secret() == *again);
}

TEST_CASE("what can't be a state folder is refused by its path") {
  const scratch_folder scratch;
  std::ofstream(scratch / "file") << "x";
  const auto file = state_folder::open(scratch / "file");
  REQUIRE_FALSE(file);
  CHECK(file.fault().message == (scratch / "file").string() + ": is not a folder");
  std::filesystem::create_directory(scratch / "open");
  chmod((scratch / "open").c_str(), 0777);
  const auto open = state_folder::open(scratch / "open");
  REQUIRE_FALSE(open);
  CHECK(open.fault().code == errc::io_failed);
  CHECK_FALSE(state_folder::open(scratch / "file/below"));
}
