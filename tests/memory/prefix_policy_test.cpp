// Which cached pages go first, which when their time is over, and which stay.
#include <doctest/doctest.h>

#include <numeric>

#include "memory/kv_shard_memory.hpp"

using namespace troupe;

namespace {

constexpr int P = limits::page_tokens;
using namespace std::chrono_literals;

std::vector<token_id> tokens_from(token_id first, int n) {
  std::vector<token_id> out(static_cast<std::size_t>(n));
  std::iota(out.begin(), out.end(), first);
  return out;
}

class scene {
public:
  scene(std::uint32_t pages, prefix_policy policy) : memory({.pages = pages, .prefix = policy}) {}

  // A request for `tokens` from its beginning to its end; how many were cached.
  int pass(const std::vector<token_id>& tokens, bool pin = false) {
    const lease_id lease = ++last_;
    auto answer = memory.reserve({0, lease, {lease, 0}, std::make_shared<const std::vector<token_id>>(tokens), 7,
                                  static_cast<int>(tokens.size()), 0, false});
    REQUIRE(std::holds_alternative<pages_reserved>(answer));
    const auto& got = std::get<pages_reserved>(answer);
    const auto from = got.shared_tokens;
    memory.publish({0, lease, {lease, 0}, from, {tokens.begin() + from, tokens.end()}, true, pin, nullptr});
    memory.release({0, lease, {lease, 0}, static_cast<int>(tokens.size()) / P * P, {}});
    memory.check_invariants();
    return got.cached_tokens;
  }
  bool known(const std::vector<token_id>& tokens) {
    auto longer = tokens;
    longer.push_back(-1);
    const lease_id lease = ++last_;
    auto answer = memory.reserve({0, lease, {lease, 0}, std::make_shared<const std::vector<token_id>>(longer), 7,
                                  static_cast<int>(longer.size()), 0, false});
    const auto cached = std::get<pages_reserved>(answer).cached_tokens;
    memory.release({0, lease, {lease, 0}, 0, {}});
    return cached == static_cast<int>(tokens.size());
  }

  kv_shard_memory memory;

private:
  lease_id last_ = 0;
};

} // namespace

TEST_CASE("least recently used: what was found long ago goes before what was found last, however often") {
  scene s(5, {.eviction = eviction_policy::lru});
  for (int i = 0; i < 5; ++i)
    s.pass(tokens_from(0, P + 1)); // often: the page and one tail
  s.pass(tokens_from(1000, P + 1));
  s.pass(tokens_from(2000, 3 * P));
  CHECK(s.known(tokens_from(1000, P)));
  CHECK_FALSE(s.known(tokens_from(0, P)));
}

TEST_CASE("least frequently used: what was found often outlives what was found once, until it is old") {
  scene s(6, {.eviction = eviction_policy::lfu});
  for (int i = 0; i < 5; ++i)
    s.pass(tokens_from(0, P + 1));
  for (token_id other = 1; other <= 4; ++other)
    s.pass(tokens_from(1000 * other, P));
  s.pass(tokens_from(9000, 2 * P));
  CHECK(s.known(tokens_from(0, P)));
  // Ageing: each eviction lifts those that come later.
  for (token_id other = 10; other <= 60; ++other)
    for (int twice = 0; twice < 3; ++twice)
      s.pass(tokens_from(1000 * other, P + 1));
  CHECK_FALSE(s.known(tokens_from(0, P)));
}

TEST_CASE("what nobody uses for the time to live goes, and what is used meanwhile stays") {
  scene s(10, {.time_to_live = 60s});
  const steady_time start{};
  s.memory.pass(start);
  s.pass(tokens_from(0, 2 * P));
  s.pass(tokens_from(1000, P));
  s.memory.pass(start + 50s);
  s.pass(tokens_from(0, 2 * P));
  s.memory.pass(start + 70s);
  s.memory.check_invariants();
  CHECK(s.memory.stats().expired_pages == 1);
  CHECK_FALSE(s.known(tokens_from(1000, P)));
  CHECK(s.known(tokens_from(0, P)));
  s.memory.pass(start + 200s);
  s.memory.check_invariants();
  CHECK(s.memory.stats().free == 10);
  s.memory.pass(start); // time that seems to run backwards changes nothing
}

TEST_CASE("without a time to live nothing expires") {
  scene s(10, {});
  s.pass(tokens_from(0, 2 * P));
  s.memory.pass(steady_time{} + 1'000'000s);
  CHECK(s.memory.stats().cached == 2);
}

TEST_CASE("a pinned prompt outlives what comes after it, beyond any time to live, for a day") {
  scene s(8, {.time_to_live = 60s, .pinned_percent = 50});
  const auto system = tokens_from(0, 2 * P + 5);
  s.pass(system, true);
  CHECK(s.memory.stats().pinned == 3);
  for (token_id other = 1; other <= 20; ++other)
    s.pass(tokens_from(1000 * other, 3 * P));
  CHECK(s.memory.stats().evicted_pages > 0);
  CHECK(s.known(system));
  s.memory.pass(steady_time{} + 3600s);
  CHECK(s.known(system));
  s.memory.pass(steady_time{} + 3600s + limits::pin_life);
  CHECK_FALSE(s.known(system));
  CHECK(s.memory.stats().pinned == 0);
}

TEST_CASE("pins beyond their share are counted and not done") {
  scene s(8, {.pinned_percent = 50});
  s.pass(tokens_from(0, 3 * P), true);
  s.pass(tokens_from(0, 3 * P), true); // the same pages: nothing more
  CHECK(s.memory.stats().pins_refused == 0);
  s.pass(tokens_from(1000, 2 * P), true);
  CHECK(s.memory.stats().pins_refused == 1);
  CHECK(s.memory.stats().pinned == 3);
  s.pass(tokens_from(2000, P), true);
  CHECK(s.memory.stats().pinned == 4);
}

TEST_CASE("beside others a request waits rather than take pinned pages") {
  kv_shard_memory memory({.pages = 8, .prefix = {.pinned_percent = 50}});
  const auto ask = [&](lease_id lease, token_id first, int n) {
    return memory.reserve({0, lease, {lease, 0}, std::make_shared<const std::vector<token_id>>(tokens_from(first, n)), 7, n, 0, false});
  };
  ask(1, 0, 3 * P);
  memory.publish({0, 1, {1, 0}, 0, tokens_from(0, 3 * P), true, true, nullptr});
  memory.release({0, 1, {1, 0}, 3 * P, {}});
  ask(2, 1000, 3 * P);
  CHECK(std::holds_alternative<pages_refused>(ask(3, 2000, 3 * P)));
  CHECK(std::holds_alternative<pages_reserved>(ask(3, 2000, 2 * P)));
  CHECK(std::holds_alternative<pages_grown>(memory.grow({0, 2, {2, 0}, 4 * P, 4 * P}))); // those that run come first
  memory.check_invariants();
  CHECK(memory.stats().pinned == 2);
  memory.release({0, 2, {2, 0}, 0, {}});
  memory.release({0, 3, {3, 0}, 0, {}});
  CHECK(std::holds_alternative<pages_reserved>(ask(4, 3000, 8 * P)));
}

TEST_CASE("a request that needs the whole pool gets it, pinned pages last") {
  scene s(4, {.pinned_percent = 50});
  s.pass(tokens_from(0, 2 * P), true);
  s.pass(tokens_from(1000, P));
  s.pass(tokens_from(5000, 3 * P));
  CHECK(s.known(tokens_from(0, P)));
  CHECK_FALSE(s.known(tokens_from(1000, P)));
  CHECK(s.pass(tokens_from(7000, 4 * P)) == 0);
  CHECK(s.memory.stats().pinned == 0);
}
