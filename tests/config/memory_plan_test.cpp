#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include "config/memory_plan.hpp"
#include "config/settings.hpp"

using namespace troupe;

namespace {

constexpr std::uint64_t mib = 1u << 20;

// About SmolLM2-135M: 140 MiB of program and weights, 30 of its file read later, pages of 360 KiB.
memory_needs small_model() {
  memory_needs needs;
  needs.resident_bytes = 140 * mib;
  needs.peak_bytes = 150 * mib;
  needs.later_bytes = 30 * mib;
  needs.kept_bytes = 2 * mib;
  needs.page_bytes = 360 << 10;
  needs.request_bytes = 56 << 10;
  needs.pages_min = 32;
  needs.requests_max = 320;
  return needs;
}

std::uint64_t bytes_of(std::uint64_t limit, const memory_needs& needs, const memory_plan& plan) {
  const auto shares = share_memory(limit);
  return needs.resident_bytes + needs.later_bytes + needs.kept_bytes + shares.input_bytes + shares.answer_bytes +
         shares.stored_bytes + shares.socket_stored_bytes + shares.history_bytes + limits::body_working_factor * shares.body_bytes_max +
         plan.pages * needs.page_bytes + static_cast<std::uint64_t>(plan.requests_max) * needs.request_bytes;
}

// The number of MiB behind `text` in a message.
std::uint64_t mib_behind(const std::string& message, const std::string& text) {
  const auto at = message.find(text);
  REQUIRE(at != std::string::npos);
  return std::strtoull(message.c_str() + at + text.size(), nullptr, 10);
}

} // namespace

TEST_CASE("without a limit every share is the bound that limits.hpp names") {
  const auto shares = share_memory(0);
  CHECK(shares.input_bytes == limits::buffered_input_bytes_max);
  CHECK(shares.body_bytes_max == limits::body_bytes_max);
  CHECK(shares.stored_bytes == limits::stored_responses_bytes_max);
  CHECK(shares.connections_max == limits::connections_max);
}

TEST_CASE("the parts of a plan add up to the limit at most, and most of it is used") {
  const auto needs = small_model();
  for (std::uint64_t limit = 300 * mib; limit <= 64'000 * mib; limit += limit / 7) {
    CAPTURE(limit);
    const auto plan = plan_memory(limit, needs);
    REQUIRE(plan);
    const auto used = bytes_of(limit, needs, *plan);
    CHECK(used <= limit);
    CHECK(used > limit / 10 * 9);
  }
}

TEST_CASE("a higher limit gives nobody less") {
  auto needs = small_model();
  needs.requests_max = 1 << 20;
  memory_plan before;
  memory_shares shares_before;
  shares_before.input_bytes = shares_before.body_bytes_max = shares_before.answer_bytes = 0;
  shares_before.stored_bytes = shares_before.history_bytes = 0;
  shares_before.connections_max = 0;
  for (std::uint64_t limit = 300 * mib; limit <= 16'000 * mib; limit += 37 * mib) {
    CAPTURE(limit);
    const auto plan = plan_memory(limit, needs);
    REQUIRE(plan);
    CHECK(plan->pages >= before.pages);
    CHECK(plan->requests_max >= before.requests_max);
    const auto shares = share_memory(limit);
    CHECK(shares.input_bytes >= shares_before.input_bytes);
    CHECK(shares.body_bytes_max >= shares_before.body_bytes_max);
    CHECK(shares.answer_bytes >= shares_before.answer_bytes);
    CHECK(shares.stored_bytes >= shares_before.stored_bytes);
    CHECK(shares.history_bytes >= shares_before.history_bytes);
    CHECK(shares.connections_max >= shares_before.connections_max);
    before = *plan;
    shares_before = shares;
  }
}

TEST_CASE("a limit that is too low is refused with the lowest that would do, and that one does") {
  const auto needs = small_model();
  const auto refused = plan_memory(100 * mib, needs);
  REQUIRE_FALSE(refused);
  CHECK(refused.fault().code == errc::no_memory);
  CHECK(refused.fault().message.find("memory.limit: 100 MiB are too little") == 0);
  const auto least = mib_behind(refused.fault().message, "at least ");
  CHECK(mib_behind(refused.fault().message, "of which ") == 170);
  CHECK(least > 170);
  const auto plan = plan_memory(least * mib, needs);
  REQUIRE(plan);
  CHECK(plan->pages >= needs.pages_min);
  CHECK_FALSE(plan_memory((least - 2) * mib, needs));
}

TEST_CASE("a limit below what loading took is refused, however little the model needs afterwards") {
  auto needs = small_model();
  needs.peak_bytes = 900 * mib;
  const auto refused = plan_memory(800 * mib, needs);
  REQUIRE_FALSE(refused);
  CHECK(mib_behind(refused.fault().message, "at least ") >= 900);
  CHECK(plan_memory(901 * mib, needs));
}

TEST_CASE("a pool that the settings ask for and the limit has no room for is refused") {
  auto needs = small_model();
  needs.pages_min = 2000; // memory.kv_mib=703
  CHECK_FALSE(plan_memory(600 * mib, needs));
  CHECK(plan_memory(1400 * mib, needs));
}

TEST_CASE("long contexts leave room for fewer requests at once, not for none") {
  auto needs = small_model();
  needs.request_bytes = 700 << 10;
  const auto plan = plan_memory(600 * mib, needs);
  REQUIRE(plan);
  CHECK(plan->requests_max < 32);
  CHECK(plan->requests_max > 0);
}

TEST_CASE("memory.limit is read with and without a unit, and shown with the largest that fits") {
  settings s;
  CHECK(s.memory.limit == 0);
  for (const auto& [text, bytes] : {std::pair<const char*, std::uint64_t>{"600MiB", 600 * mib}, {"2GiB", 2048 * mib}, {"1TiB", std::uint64_t{1} << 40},
                                    {"734003200", 700 * mib}, {"512KiB", mib / 2}, {"4096B", 4096}, {"0", 0}}) {
    CAPTURE(text);
    REQUIRE(apply_override(s, std::string("memory.limit=") + text));
    CHECK(s.memory.limit == bytes);
  }
  for (const char* bad : {"600MB", "MiB", "-1", "1.5GiB", "600 MiB", "2000TiB", "99999999999999999999"}) {
    CAPTURE(bad);
    CHECK_FALSE(apply_override(s, std::string("memory.limit=") + bad));
  }
  CHECK(s.memory.limit == 0);
  REQUIRE(apply_yaml(s, "memory:\n  limit: 600MiB\n"));
  CHECK(describe(s).find("\nmemory.limit=600MiB\n") != std::string::npos);
  s.memory.limit = 1234567;
  CHECK(describe(s).find("\nmemory.limit=1234567\n") != std::string::npos);
}
