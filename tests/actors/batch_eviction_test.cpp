// Sequences that exceed their budget, in the world of batch_world.hpp.
#include <doctest/doctest.h>

#include "batch_world.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr int P = limits::page_tokens;

batch_request budgeted(batch_world& world, int prompt, int max_new_tokens, int budget = 6 * P) {
  auto r = world.request(prompt_of(1, prompt), max_new_tokens);
  r.budget_tokens = budget;
  r.ignore_eos = true;
  return r;
}

} // namespace

TEST_CASE("a sequence at its budget is read again, lets most of it stay and goes on within its pages") {
  batch_world world(small_config());
  const auto& s = world.submit(budgeted(world, 30, 300));
  const auto most = world.most_pages_until_idle();
  REQUIRE(s.finished);
  CHECK(s.generated() == 300);
  const auto stats = world.schedule().stats();
  // 96 are held, 67 stay: of the 329 that are computed, the first 96 and then each 29 lead to an eviction.
  CHECK(stats.evictions == (329 - 96 - 1) / 29 + 1);
  CHECK(stats.evicted_tokens == stats.evictions * 29);
  CHECK(s.finished->usage.dropped_tokens == static_cast<int>(stats.evicted_tokens));
  CHECK(stats.reread_tokens >= stats.evictions * 96);
  CHECK(most <= 7); // the budget and what is read again
  world.check_all_returned();
}

TEST_CASE("a prompt that exceeds its budget is read up to it, evicted, and read on") {
  batch_world world(small_config());
  const auto& s = world.submit(budgeted(world, 400, 20));
  const auto& beside = world.submit(world.request(prompt_of(2, 30), 60));
  world.run_until_idle();
  REQUIRE(s.finished);
  REQUIRE(beside.finished);
  CHECK(s.generated() == 20);
  world.check_all_returned();
}

TEST_CASE("pages that others share are left as they are, and what stays moves to the sequence's own") {
  batch_world world(small_config());
  world.submit(world.request(prompt_of(1, 5 * P + 2), 1));
  world.run_until_idle();
  const auto& s = world.submit(budgeted(world, 5 * P + 2, 100));
  const auto& other = world.submit(world.request(prompt_of(1, 5 * P + 2), 100));
  world.run_until_idle();
  REQUIRE(s.finished);
  REQUIRE(other.finished);
  CHECK(s.finished->usage.cached_tokens == 5 * P + 1);
  CHECK(world.schedule().stats().evictions > 0);
  CHECK(world.schedule().stats().preemptions == 0);
  world.check_all_returned();
}

TEST_CASE("where a full shard has no pages beside the shared ones, it is read again in its own") {
  batch_world world(small_config({7}));
  world.submit(world.request(prompt_of(1, 5 * P + 2), 1));
  world.run_until_idle();
  const auto& s = world.submit(budgeted(world, 5 * P + 2, 100));
  world.run_until_idle();
  REQUIRE(s.finished);
  CHECK(world.schedule().stats().preemptions == 1);
  world.check_all_returned();
}

TEST_CASE("a step that fails while it moves what stays is made up for from the beginning, with the same end") {
  batch_world world(small_config());
  const auto& s = world.submit(budgeted(world, 90, 60));
  world.pump();
  while (world.plan().compactions.empty()) {
    world.end_step();
    world.pump();
  }
  world.fail_step();
  world.run_until_idle();
  REQUIRE(s.finished);
  CHECK(s.generated() == 60);
  world.check_all_returned();
}

TEST_CASE("a budget of half a page, of one page, beside a window or beyond a shard is refused") {
  batch_world world(small_config({6}));
  const auto refusal = [&](const batch_request& r) {
    const auto& s = world.submit(r);
    world.pump();
    return s.failed ? s.failed->fault.code : errc::ok;
  };
  CHECK(refusal(budgeted(world, 10, 10, P + P / 2)) == errc::invalid_argument);
  CHECK(refusal(budgeted(world, 10, 10, P)) == errc::invalid_argument);
  auto both = budgeted(world, 10, 10, 3 * P);
  both.window = {1, 1};
  both.ring_pages = 2;
  CHECK(refusal(both) == errc::invalid_argument);
  auto all = budgeted(world, 10, 10, 3 * P);
  all.keep_percent = 100;
  CHECK(refusal(all) == errc::invalid_argument);
  CHECK(refusal(budgeted(world, 10, 10, 6 * P)) == errc::no_memory);
}
