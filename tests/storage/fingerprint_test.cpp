#include <doctest/doctest.h>

#include <fstream>

#include "storage/fingerprint.hpp"
#include "tests/support/scratch_folder.hpp"

using namespace troupe;
using troupe::testing::scratch_folder;

namespace {

void put(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

} // namespace

TEST_CASE("a file's fingerprint depends on every byte, not on its name") {
  const scratch_folder scratch;
  std::string text(3'000'000, 'x');
  put(scratch / "a", text);
  put(scratch / "b", text);
  const auto first = fingerprint_of(scratch / "a");
  REQUIRE(first);
  CHECK(first->size() == 32);
  CHECK(*fingerprint_of(scratch / "b") == *first);
  for (const std::size_t at : {std::size_t{0}, std::size_t{1'048'576}, text.size() - 1}) {
    auto other = text;
    other[at] = 'y';
    put(scratch / "b", other);
    CHECK(*fingerprint_of(scratch / "b") != *first);
  }
  put(scratch / "b", text + '\0');
  CHECK(*fingerprint_of(scratch / "b") != *first);
}

TEST_CASE("a folder's fingerprint depends on its files and their names") {
  const scratch_folder scratch;
  std::filesystem::create_directory(scratch / "m");
  put(scratch / "m/a", "1");
  put(scratch / "m/b", "2");
  const auto first = fingerprint_of(scratch / "m");
  REQUIRE(first);
  CHECK(*fingerprint_of(scratch / "m") == *first);
  put(scratch / "m/b", "3");
  const auto changed = *fingerprint_of(scratch / "m");
  CHECK(changed != *first);
  put(scratch / "m/b", "2");
  std::filesystem::rename(scratch / "m/b", scratch / "m/c");
  CHECK(*fingerprint_of(scratch / "m") != *first);
  CHECK(*fingerprint_of(scratch / "m") != changed);
}

TEST_CASE("what can't be read has no fingerprint") {
  const scratch_folder scratch;
  const auto missing = fingerprint_of(scratch / "nothing");
  REQUIRE_FALSE(missing);
  CHECK(missing.fault().code == errc::io_failed);
}
