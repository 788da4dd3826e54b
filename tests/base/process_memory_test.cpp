#include "base/process_memory.hpp"

#include <doctest/doctest.h>
#include <sys/mman.h>

#include <cstring>

using namespace troupe;

TEST_CASE("memory counts as resident once it is written, and no more when it is given back; the peak stays") {
  constexpr std::size_t bytes = 64u << 20;
  constexpr std::size_t about = 2u << 20; // the kernel counts in batches, and a sanitizer has its own
  const auto before = memory_of_process();
  REQUIRE(before.resident_bytes > 0);
  CHECK(before.peak_bytes >= before.resident_bytes);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  CHECK(memory_of_process().resident_bytes < before.resident_bytes + about);
  std::memset(memory, 1, bytes);
  const auto full = memory_of_process();
  CHECK(full.resident_bytes + about > before.resident_bytes + bytes);
  munmap(memory, bytes);
  const auto after = memory_of_process();
  CHECK(after.resident_bytes + bytes < full.resident_bytes + about);
  CHECK(after.peak_bytes + about > full.resident_bytes);
}
