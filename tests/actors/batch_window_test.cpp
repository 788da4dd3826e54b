// Sequences that outgrow their window, in the world of batch_world.hpp.
#include <doctest/doctest.h>

#include <set>

#include "batch_world.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr int P = limits::page_tokens;
constexpr attention_window window{1, 4};

batch_request windowed(batch_world& world, int prompt, int max_new_tokens, int ring = 6) {
  auto r = world.request(prompt_of(1, prompt), max_new_tokens);
  r.window = window;
  r.ring_pages = ring;
  r.context_tokens = 7 * P;
  r.ignore_eos = true;
  return r;
}

} // namespace

TEST_CASE("an answer goes on beyond its context in the pages it has, and gives the tokens of its oracle") {
  batch_world world(small_config());
  const auto& s = world.submit(windowed(world, 30, 600));
  const auto most = world.most_pages_until_idle();
  REQUIRE(s.finished);
  CHECK(s.finished->reason == sequence_end::length);
  CHECK(s.generated() == 600);
  CHECK(s.finished->usage.dropped_tokens == (629 / P - 3) * P - P); // the last of 630 tokens sees page 0 and four more
  CHECK(most == 7); // of 40 pages' worth of tokens
  CHECK(world.memory(0).stats().growths <= 4); // until the window is full; then its pages turn without asking
  world.check_all_returned();
}

TEST_CASE("a prompt longer than its context is read through the window, in cuts that its pages allow") {
  batch_world world(small_config());
  const auto& s = world.submit(windowed(world, 400, 20));
  world.run_until_idle();
  REQUIRE(s.finished);
  CHECK(s.generated() == 20);
  world.check_all_returned();
}

TEST_CASE("what a sequence left within its window is found by others, and what others left by it") {
  batch_world world(small_config());
  world.submit(windowed(world, 70, 5));
  world.run_until_idle();
  const auto& whole = world.submit(world.request(prompt_of(1, 70), 5)); // without a window
  world.run_until_idle();
  CHECK(whole.finished->usage.cached_tokens == 69);
  const auto& again = world.submit(windowed(world, 400, 20));
  world.run_until_idle();
  CHECK(again.finished->usage.cached_tokens >= 70); // and what the answer has in common
  CHECK(again.finished->usage.dropped_tokens == (419 / P - 3) * P - P);
  const auto& later = world.submit(world.request(prompt_of(1, 400), 5));
  world.run_until_idle();
  CHECK(later.finished->usage.cached_tokens < 5 * P); // nothing that was computed beyond the window
  world.check_all_returned();
}

TEST_CASE("where a full shard has no page to go on in beside those shared with others, it is read again in pages of its own") {
  batch_world world(small_config({7}));
  world.submit(windowed(world, 70, 1));
  world.run_until_idle();
  const auto& s = world.submit(windowed(world, 70, 200));
  world.run_until_idle();
  REQUIRE(s.finished);
  CHECK(s.finished->usage.cached_tokens == 69);
  CHECK(world.schedule().stats().preemptions == 1);
  world.check_all_returned();
}

TEST_CASE("two that outgrow their windows beside each other in a full shard pre-empt, never stop") {
  batch_world world(small_config({13}));
  for (int i = 0; i < 2; ++i)
    world.submit(windowed(world, 70, 300));
  world.run_until_idle();
  for (const auto& [number, s] : world.sessions())
    CHECK(s.finished);
  world.check_all_returned();
}

TEST_CASE("a window that shows all that it holds, or more pages than a shard has, is refused") {
  batch_world world(small_config({6}));
  const auto& no_page_more = world.submit(windowed(world, 10, 10, 4));
  const auto& too_large = world.submit(windowed(world, 10, 10, 6));
  world.pump();
  REQUIRE(no_page_more.failed);
  CHECK(no_page_more.failed->fault.code == errc::invalid_argument);
  REQUIRE(too_large.failed);
  CHECK(too_large.failed->fault.code == errc::no_memory);
}
