#include "cpu/huge_memory.hpp"

#include <cstdint>
#include <new>
#include <utility>

#include <doctest/doctest.h>

using troupe::cpu::huge_memory;

TEST_CASE("huge memory is zeroed, covers what was asked and is aligned for huge pages when it is large") {
  for (std::size_t bytes : {std::size_t{1}, std::size_t{5000}, std::size_t{2} << 20, (std::size_t{5} << 20) + 123}) {
    CAPTURE(bytes);
    const huge_memory memory(bytes);
    REQUIRE(memory.size() >= bytes);
    const std::size_t alignment = bytes >= (2u << 20) ? 2u << 20 : 4096;
    CHECK(reinterpret_cast<std::uintptr_t>(memory.data()) % alignment == 0);
    CHECK(memory.data()[0] == std::byte{0});
    CHECK(memory.data()[bytes - 1] == std::byte{0});
    memory.data()[bytes - 1] = std::byte{1};
  }
}

TEST_CASE("moving huge memory hands the mapping over") {
  huge_memory a(100);
  a.data()[7] = std::byte{9};
  huge_memory b(std::move(a));
  CHECK(b.data()[7] == std::byte{9});
  huge_memory c;
  CHECK(c.data() == nullptr);
  c = std::move(b);
  CHECK(c.data()[7] == std::byte{9});
}

TEST_CASE("memory that the system refuses is bad_alloc") {
  CHECK_THROWS_AS(huge_memory(SIZE_MAX), std::bad_alloc);
  CHECK_THROWS_AS(huge_memory(std::size_t{1} << 62), std::bad_alloc);
}
