#include "actors/batcher/batch_schedule.hpp"

#include <doctest/doctest.h>

#include "base/check.hpp"
#include "batch_world.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr int P = limits::page_tokens;

// (request number, first position, tokens) in the plan's order.
using plan_part = std::tuple<std::uint64_t, int, int>;
std::vector<plan_part> parts(const step_plan& plan) {
  std::vector<plan_part> out;
  for (const auto& s : plan.sequences)
    out.emplace_back(s.id.number, s.position, static_cast<int>(s.tokens.size()));
  return out;
}
using plan_parts = std::vector<plan_part>;

errc refusal_of(batch_world& world, const batch_request& r) {
  const auto& s = world.submit(r);
  return s.failed ? s.failed->fault.code : errc::ok;
}

} // namespace

// -- steps --

TEST_CASE("a step takes every decode and fills the rest with a slice of prefill") {
  batch_world world(small_config());
  world.submit(world.request(prompt_of(1, 10), 20)); // 1
  world.turn();
  world.submit(world.request(prompt_of(2, 100), 20)); // 2
  world.pump();
  CHECK(parts(world.plan()) == plan_parts{{1, 10, 1}});
  world.turn();
  CHECK(parts(world.plan()) == plan_parts{{1, 11, 1}, {2, 0, 31}});
  world.turn();
  CHECK(parts(world.plan()) == plan_parts{{1, 12, 1}, {2, 31, 31}});
  world.run_until_idle();
  CHECK(world.session(2).finished->reason == sequence_end::length);
  world.check_all_returned();
}

TEST_CASE("the shorter prompt is read first, equals in the order of arrival, higher priority before both") {
  batch_world world(small_config());
  world.kill_compute();
  world.submit(world.request(prompt_of(1, 60), 1));
  world.submit(world.request(prompt_of(2, 20), 1));
  world.submit(world.request(prompt_of(3, 20), 1));
  auto urgent = world.request(prompt_of(4, 60), 1);
  urgent.priority = 1;
  world.submit(urgent);
  world.pump();
  world.restart_compute();
  CHECK(parts(world.plan()) == plan_parts{{4, 0, 32}});
  world.turn();
  CHECK(parts(world.plan()) == plan_parts{{4, 32, 28}, {2, 0, 4}});
  world.turn();
  CHECK(parts(world.plan()) == plan_parts{{2, 4, 16}, {3, 0, 16}});
  world.turn();
  CHECK(parts(world.plan()) == plan_parts{{3, 16, 4}, {1, 0, 28}});
  world.run_until_idle();
}

TEST_CASE("who has waited long enough comes before a shorter prompt and before a higher priority") {
  batch_world world(small_config({400}));
  world.kill_compute();
  world.submit(world.request(prompt_of(1, 2000), 1));
  world.pass(3);
  world.submit(world.request(prompt_of(2, 300), 1)); // 2000 tokens are worth 3.9 s, these 0.6 s
  world.pass(2);
  world.submit(world.request(prompt_of(3, 300), 1));
  auto urgent = world.request(prompt_of(4, 300), 1);
  urgent.priority = 1;
  world.pass(70);
  world.submit(urgent);
  world.pump();
  world.restart_compute();
  std::vector<std::uint64_t> order;
  while (!world.schedule().idle()) {
    for (const auto& s : world.plan().sequences)
      if (s.sample)
        order.push_back(s.id.number);
    world.turn();
  }
  CHECK(order == std::vector<std::uint64_t>{2, 1, 3, 4});
}

TEST_CASE("decodes that exceed a step take turns, and prefill keeps its share") {
  auto c = small_config();
  c.step_tokens = 4;
  batch_world world(c);
  for (int i = 1; i <= 6; ++i)
    world.submit(world.request(prompt_of(i, 2), 100));
  for (int i = 0; i < 20; ++i)
    world.turn();
  world.submit(world.request(prompt_of(7, 40), 1));
  world.pump();
  std::vector<int> before;
  for (std::uint64_t n = 1; n <= 6; ++n)
    before.push_back(world.session(n).generated());
  int steps = 0;
  for (; !world.session(7).finished; ++steps)
    world.turn();
  CHECK(steps <= 42); // one prompt token a step, three decodes; the first step had begun
  for (std::uint64_t n = 1; n <= 6; ++n) {
    const int got = world.session(n).generated() - before[n - 1];
    CHECK(got >= steps / 2 - 1);
    CHECK(got <= steps / 2 + 2);
  }
  world.run_until_idle();
  world.check_all_returned();
}

TEST_CASE("a step's result with another number than the one in flight is ignored") {
  batch_world world(small_config());
  world.submit(world.request(prompt_of(1, 10), 3));
  world.pump();
  const auto number = *world.schedule().step_in_flight();
  step_result other;
  other.number = number + 1;
  CHECK(world.schedule().step_done(other).empty());
  CHECK(world.schedule().step_failed(number + 1, fail(errc::device_failed, "late")).empty());
  CHECK(world.schedule().stats().late_answers == 2);
  CHECK(world.schedule().step_in_flight() == number);
  world.run_until_idle();
}

TEST_CASE("a request with penalties is told how often each token stands in prompt and answer") {
  batch_world world(small_config());
  auto r = world.request(prompt_of(1, 40), 60);
  auto sampling = *r.sampling;
  sampling.presence_penalty = 0.5f;
  r.sampling = std::make_shared<const sampling_params>(sampling);
  world.submit(r);
  world.submit(world.request(prompt_of(2, 10), 30));
  for (int i = 0; i < 20; ++i)
    world.turn();
  world.restart_batcher(); // counts again what it is given
  world.run_until_idle();  // the world compares the counts of each step
  CHECK(world.session(1).finished->usage.completion_tokens == 60);
}

// -- ends --

TEST_CASE("an answer ends at its end token, which is counted and told but is not among the tokens") {
  batch_world world(small_config());
  auto r = world.request(prompt_of(1, 10), 500);
  for (token_id t = 0; t < 6; ++t)
    r.end_tokens.push_back(t);
  const auto& s = world.submit(r);
  world.run_until_idle();
  REQUIRE(s.finished);
  CHECK(s.finished->reason == sequence_end::end_token);
  CHECK(s.finished->end_token >= 0);
  CHECK(s.finished->end_token < 6);
  CHECK(s.finished->usage.completion_tokens == s.generated() + 1);
  for (std::size_t i = 10; i < s.tokens.size(); ++i)
    CHECK(s.tokens[i] >= 6);
}

TEST_CASE("with ignore_eos an answer goes on to its length") {
  batch_world world(small_config());
  auto r = world.request(prompt_of(1, 10), 50);
  for (token_id t = 0; t < 30; ++t)
    r.end_tokens.push_back(t);
  r.ignore_eos = true;
  const auto& s = world.submit(r);
  world.run_until_idle();
  CHECK(s.finished->reason == sequence_end::length);
  CHECK(s.finished->usage.completion_tokens == 50);
}

TEST_CASE("an answer ends where the context is full, or what a shard can hold") {
  batch_world world(small_config({8, 4}));
  auto r = world.request(prompt_of(1, 10), 500);
  r.context_tokens = 30;
  const auto& a = world.submit(r);
  const auto& b = world.submit(world.request(prompt_of(2, 10), 500));
  world.run_until_idle();
  CHECK(a.finished->reason == sequence_end::length);
  CHECK(a.tokens.size() == 30);
  CHECK(b.finished->reason == sequence_end::length);
  CHECK(b.tokens.size() == static_cast<std::size_t>(4 * P + 1));
  world.check_all_returned();
}

TEST_CASE("max_new_tokens 0 computes and publishes the prompt and chooses no token") {
  batch_world world(small_config());
  const auto& s = world.submit(world.request(prompt_of(1, 50), 0));
  world.run_until_idle();
  CHECK(s.finished->reason == sequence_end::length);
  CHECK(s.generated() == 0);
  CHECK_FALSE(s.first);
  const auto& again = world.submit(world.request(prompt_of(1, 50), 1));
  world.run_until_idle();
  CHECK(again.first->usage.cached_tokens == 49); // all but the last
  CHECK(again.finished->usage.cached_tokens == 49);
}

TEST_CASE("what one request computed the next one shares, from the step's end on") {
  batch_world world(small_config({64}));
  world.submit(world.request(prompt_of(1, 64), 100));
  world.turn(); // 32 tokens done and published
  const auto& second = world.submit(world.request(prompt_of(1, 64), 2));
  world.run_until_idle();
  CHECK(second.first->usage.cached_tokens == 32);
  const auto& third = world.submit(world.request(world.session(1).tokens, 2)); // the whole first turn, answer included
  world.run_until_idle();
  CHECK(third.first->usage.cached_tokens == 163); // of 164; the last answer token was never computed
}

// -- refusals --

TEST_CASE("what is wrong with a request is refused when it is submitted") {
  batch_world world(small_config({8, 4}));
  auto with = [&](auto change) {
    auto r = world.request(prompt_of(1, 10), 10);
    change(r);
    return refusal_of(world, r);
  };
  CHECK(with([](auto& r) { r.tokens = nullptr; }) == errc::invalid_argument);
  CHECK(with([](auto& r) { r.prompt_length = 0; }) == errc::invalid_argument);
  CHECK(with([](auto& r) { r.prompt_length = 11; }) == errc::invalid_argument);
  CHECK(with([](auto& r) { r.sampling = nullptr; }) == errc::invalid_argument);
  CHECK(with([](auto& r) { r.max_new_tokens = -1; }) == errc::invalid_argument);
  CHECK(with([](auto& r) { r.end_tokens.resize(limits::end_tokens_max + 1); }) == errc::invalid_argument);
  CHECK(with([](auto& r) { r.priority = limits::priority_max + 1; }) == errc::invalid_argument);
  CHECK(with([](auto& r) { r.priority = -limits::priority_max - 1; }) == errc::invalid_argument);
  CHECK(with([](auto& r) { r.context_tokens = 10; }) == errc::context_full);
  CHECK(refusal_of(world, world.request(prompt_of(1, 4 * P + 1), 1)) == errc::no_memory);
  CHECK(world.schedule().stats().refused == 10);
  CHECK(world.schedule().idle());
  CHECK(with([](auto& r) { r.priority = limits::priority_max; }) == errc::ok);
  CHECK(with([](auto& r) { r.context_tokens = 11; }) == errc::ok);
  CHECK(with([](auto& r) { r.context_tokens = 10; r.max_new_tokens = 0; }) == errc::ok);
  CHECK(refusal_of(world, world.request(prompt_of(1, 4 * P), 1)) == errc::ok);
  world.run_until_idle();
  world.check_all_returned();
}

TEST_CASE("the waiting queue is bounded, and a request that was accepted before a crash has room beyond it") {
  auto c = small_config();
  c.running_max = 2;
  c.waiting_max = 3;
  batch_world world(c);
  for (int i = 0; i < 2; ++i)
    world.submit(world.request(prompt_of(i, 10), 50));
  world.pump();
  for (int i = 0; i < 3; ++i)
    CHECK(refusal_of(world, world.request(prompt_of(i, 10), 5)) == errc::ok);
  CHECK(refusal_of(world, world.request(prompt_of(9, 10), 5)) == errc::queue_full);
  auto again = world.request(prompt_of(9, 10), 5);
  again.id.generation = 1;
  CHECK(refusal_of(world, again) == errc::ok);
  again = world.request(prompt_of(9, 10), 5);
  again.id.generation = 1;
  CHECK(refusal_of(world, again) == errc::ok);
  again = world.request(prompt_of(9, 10), 5);
  again.id.generation = 1;
  CHECK(refusal_of(world, again) == errc::queue_full);
  world.run_until_idle();
  world.check_all_returned();
}

TEST_CASE("after drain new requests are refused and accepted ones are finished, also those submitted again") {
  batch_world world(small_config());
  const auto& s = world.submit(world.request(prompt_of(1, 10), 5));
  world.schedule().drain();
  CHECK(refusal_of(world, world.request(prompt_of(2, 10), 5)) == errc::shutting_down);
  auto again = world.request(prompt_of(3, 10), 5);
  again.id.generation = 2;
  CHECK(refusal_of(world, again) == errc::ok);
  world.run_until_idle();
  CHECK(s.finished);
}

TEST_CASE("a repeated id is ignored, a higher generation takes over, a lower one is refused") {
  batch_world world(small_config());
  auto r = world.request(prompt_of(1, 10), 20);
  r.id.generation = 1;
  world.submit(r);
  world.turn();
  CHECK(world.schedule().submit(r, {}).empty());
  auto lower = r;
  lower.id.generation = 0;
  const auto told = world.schedule().submit(lower, {});
  REQUIRE(told.size() == 1);
  CHECK(std::get<request_failed>(told[0]).fault.code == errc::cancelled);
  auto higher = r;
  higher.id.generation = 2;
  higher.tokens = std::make_shared<const std::vector<token_id>>(world.session(1).tokens);
  const auto before = world.session(1).tokens.size();
  auto& s = world.submit(higher);
  CHECK(before > 10);
  s.first.reset();
  world.run_until_idle();
  CHECK(s.finished->reason == sequence_end::length);
  CHECK(s.finished->usage.completion_tokens == 20);
  CHECK(world.schedule().stats().cancelled == 1);
  world.check_all_returned();
}

TEST_CASE("reservations under way are bounded and the rest follows with the answers") {
  auto c = small_config({1024});
  c.running_max = 64;
  batch_world world(c);
  const int n = limits::reservations_outstanding_max + 4;
  for (int i = 0; i < n; ++i)
    world.submit(world.request(prompt_of(i, 10), 2));
  int asked = 0;
  for (int i = 1; i <= n; ++i)
    asked += world.has_lease(static_cast<std::uint64_t>(i));
  CHECK(asked == limits::reservations_outstanding_max);
  CHECK(world.schedule().stats().waiting == 4);
  world.deliver_to_shard(0);
  world.deliver_from_shard(0);
  CHECK(world.schedule().stats().waiting == 3);
  world.run_until_idle();
  world.check_all_returned();
}

// -- cancel --

TEST_CASE("a request is cancelled while it waits") {
  auto c = small_config();
  c.running_max = 1;
  batch_world world(c);
  world.submit(world.request(prompt_of(1, 10), 5));
  const auto& s = world.submit(world.request(prompt_of(2, 10), 5));
  world.cancel({2, 0});
  CHECK(s.finished->reason == sequence_end::cancelled);
  world.cancel({2, 0}); // again, and unknown ones: nothing
  CHECK(world.schedule().cancel({77, 0}).empty());
  CHECK(world.schedule().cancel({1, 5}).empty());
  world.run_until_idle();
  CHECK(world.shards_asked(2).empty());
  CHECK(world.session(1).finished->reason == sequence_end::length);
}

TEST_CASE("a request is cancelled while its reservation is under way, before the shard sees it and after") {
  for (const bool seen : {false, true}) {
    CAPTURE(seen);
    batch_world world(small_config());
    world.submit(world.request(prompt_of(1, 10), 5));
    if (seen)
      world.deliver_to_shard(0);
    world.cancel({1, 0});
    world.pump();
    CHECK(world.steps_started() == 0);
    world.check_all_returned();
    CHECK(world.schedule().stats().late_answers == 1);
  }
}

TEST_CASE("pages that are granted after their release was sent are released again") {
  batch_schedule schedule(small_config());
  schedule.shard_ready(0, {1, 64, 64, 0});
  batch_request r;
  r.id = {1, 0};
  r.tokens = std::make_shared<const std::vector<token_id>>(prompt_of(1, 10));
  r.prompt_length = 10;
  r.max_new_tokens = 5;
  r.context_tokens = 100;
  r.sampling = std::make_shared<const sampling_params>();
  const auto asked = schedule.submit(r, {});
  const auto lease = std::get<reserve_pages>(asked.at(0)).lease;
  schedule.cancel(r.id);
  CHECK(schedule.releases_outstanding() == 1);
  schedule.answered(pages_released{0, lease, {2, 64, 64, 0}}); // the release overtook the reservation
  const auto told = schedule.answered(pages_reserved{0, lease, r.id, {0, 1}, 0, 0, {}, {}, {3, 64, 62, 0}});
  REQUIRE(told.size() == 1);
  CHECK(std::get<release_pages>(told[0]).lease == lease);
  schedule.check_invariants();
}

TEST_CASE("a request that is cancelled while a step reads its prompt keeps its pages until the step's end, not longer") {
  batch_world world(small_config());
  world.submit(world.request(prompt_of(1, 100), 5));
  world.turn();
  world.cancel({1, 0});
  world.pump();
  CHECK(world.session(1).finished);
  CHECK(world.has_lease(1));
  CHECK(world.memory(0).stats().leases == 1);
  world.turn();
  CHECK_FALSE(world.step_running());
  world.check_all_returned();
  CHECK(world.memory(0).stats().cached == 4); // what was computed is published
}

TEST_CASE("a request is cancelled while it decodes, in a step and between steps, and while it waits for growth") {
  for (const int when : {0, 1, 2}) {
    CAPTURE(when);
    batch_world world(small_config());
    world.submit(world.request(prompt_of(1, 10), 100));
    world.submit(world.request(prompt_of(2, 10), 30));
    world.turn();
    world.turn();
    if (when == 1)
      world.kill_compute();
    while (when == 2 && world.session(1).generated() < 17) // the next token needs the third page
      REQUIRE(world.end_step());
    world.cancel({1, 0});
    if (when == 1)
      world.restart_compute();
    world.run_until_idle();
    CHECK(world.session(1).finished->reason == sequence_end::cancelled);
    CHECK(world.session(2).finished->reason == sequence_end::length);
    world.check_all_returned();
  }
}

TEST_CASE("abort ends every request in order and gives every page back") {
  auto c = small_config();
  c.running_max = 2;
  batch_world world(c);
  for (int i = 1; i <= 4; ++i)
    world.submit(world.request(prompt_of(i, 10), 50));
  world.turn();
  const auto told = world.schedule().abort_all(fail(errc::shutting_down, "bye"));
  std::vector<std::uint64_t> ended;
  for (const auto& action : told)
    if (const auto* failed = std::get_if<request_failed>(&action))
      ended.push_back(failed->id.number);
  CHECK(ended == std::vector<std::uint64_t>{1, 2, 3, 4});
  CHECK_FALSE(world.schedule().idle()); // a step is in flight
}

// -- memory --

TEST_CASE("a request waits until its shard can hold it beside what those that run may soon need") {
  auto c = small_config({6});
  c.admission_lookahead_tokens = 3 * P;
  batch_world world(c);
  world.submit(world.request(prompt_of(1, P), 3 * P)); // has 2 pages, may soon need 2 more
  world.pump();
  world.submit(world.request(prompt_of(2, 2 * P), 2)); // needs 3
  world.submit(world.request(prompt_of(3, P), P));     // needs 2, but comes after 2
  world.pump();
  CHECK(world.has_lease(1));
  CHECK_FALSE(world.has_lease(2));
  CHECK(world.schedule().stats().waiting == 1); // 3 is shorter than 2, so it came first
  CHECK(world.has_lease(3));
  world.run_until_idle();
  CHECK(world.schedule().stats().preemptions == 0);
  world.check_all_returned();
}

TEST_CASE("requests that ask at the same time are not refused for each other's sake") {
  auto c = small_config({8});
  c.admission_lookahead_tokens = 8 * P;
  batch_world world(c);
  world.submit(world.request(prompt_of(1, 7 * P), 1)); // the whole shard, for a few steps
  world.pump();
  for (int i = 2; i <= 3; ++i)
    world.submit(world.request(prompt_of(i, 2 * P), 6 * P)); // 3 pages now, 8 in the end
  while (world.deliver_to_shard(0)) {
  } // both are refused and don't know yet
  while (!world.session(1).finished)
    world.end_step();
  world.submit(world.request(prompt_of(4, 2 * P), 6 * P));
  while (world.deliver_to_shard(0)) {
  } // the shard is empty when it sees the third
  world.run_until_idle();
  for (std::uint64_t n = 2; n <= 4; ++n)
    CHECK(world.session(n).finished);
  world.check_all_returned();
}

TEST_CASE("a short request does not overtake a long one that waits for memory and ranks before it") {
  auto c = small_config({6});
  batch_world world(c);
  world.submit(world.request(prompt_of(1, 2 * P), 2 * P));
  world.pump();
  world.submit(world.request(prompt_of(2, 4 * P), 2)); // 5 pages: not beside 1
  world.pump();
  world.pass(10);
  world.submit(world.request(prompt_of(3, 4), 2)); // would fit
  world.pump();
  CHECK_FALSE(world.has_lease(3));
  while (!world.session(1).finished)
    world.turn();
  CHECK(world.has_lease(2));
  world.run_until_idle();
  CHECK(world.session(2).first_token_at_step <= world.session(3).first_token_at_step);
}

TEST_CASE("a long prompt and a low priority are served under an endless stream of short and urgent requests") {
  auto c = small_config({80});
  c.running_max = 2;
  batch_world world(c);
  auto lengthy = world.request(prompt_of(1, 1000), 3); // ranks 2 s behind a short one
  auto humble = world.request(prompt_of(2, 10), 3);
  humble.priority = -1; // and this a minute
  for (int i = 0; i < 10; ++i)
    world.submit(world.request(prompt_of(3, 8), 2));
  world.submit(lengthy);
  world.submit(humble);
  std::uint64_t steps_of_long = 0, steps_of_humble = 0;
  for (int turns = 0; turns < 1200 && !(steps_of_long && steps_of_humble); ++turns) {
    for (int i = world.schedule().stats().waiting < 20 ? 2 : 0; i > 0; --i)
      world.submit(world.request(prompt_of(3, 8), 2));
    world.pass(0.1);
    world.turn();
    if (world.session(1).ended() && !steps_of_long)
      steps_of_long = world.steps_started();
    if (world.session(2).ended() && !steps_of_humble)
      steps_of_humble = world.steps_started();
  }
  CHECK(steps_of_long > 20);
  CHECK(steps_of_long < 300);
  CHECK(steps_of_humble > 300);
  CHECK(steps_of_humble < 1200);
  world.run_until_idle();
}

TEST_CASE("when decode runs out of pages the youngest of the lowest priority gives way, and its tokens stay the same") {
  auto c = small_config({8});
  c.admission_lookahead_tokens = 0;
  batch_world world(c);
  auto first = world.request(prompt_of(1, P), 5 * P);
  auto second = world.request(prompt_of(2, P), 5 * P);
  auto third = world.request(prompt_of(3, P), 5 * P);
  second.priority = 0;
  third.priority = 1; // younger than the second, but worth more
  for (const auto& r : {first, second, third})
    world.submit(r);
  std::set<std::uint64_t> waited;
  world.pump();
  while (!world.schedule().idle()) {
    for (std::uint64_t n = 1; n <= 3; ++n)
      if (!world.session(n).ended() && world.session(n).first && !world.has_lease(n))
        waited.insert(n);
    world.turn();
    world.check();
  }
  CHECK(world.schedule().stats().preemptions >= 1);
  CHECK(waited.contains(2));
  CHECK_FALSE(waited.contains(3));
  for (std::uint64_t n = 1; n <= 3; ++n)
    CHECK(world.session(n).finished->usage.completion_tokens == 5 * P); // the world compared the tokens themselves
  world.check_all_returned();
}

TEST_CASE("requests with the same beginning meet on one shard, others spread") {
  batch_world world(small_config({64, 64, 64, 64}));
  std::set<std::uint32_t> used;
  for (int kind = 0; kind < 20; ++kind) {
    world.submit(world.request(prompt_of(kind, 40), 1));
    world.pump();
    const auto a = world.shards_asked(world.sessions().rbegin()->first);
    auto longer = prompt_of(kind, 40);
    longer.push_back(3);
    world.submit(world.request(longer, 1));
    world.run_until_idle();
    const auto b = world.shards_asked(world.sessions().rbegin()->first);
    CHECK(a == b);
    used.insert(a[0]);
  }
  CHECK(used.size() == 4);
  auto r = world.request(prompt_of(0, 40), 1);
  auto q = world.request(prompt_of(1, 40), 1);
  r.affinity = q.affinity = 99;
  world.submit(r);
  world.submit(q);
  world.run_until_idle();
  CHECK(world.shards_asked(r.id.number) == world.shards_asked(q.id.number));
}

TEST_CASE("where its shard is short a request goes to the one with most free pages") {
  batch_world world(small_config({8, 8}));
  auto big = world.request(prompt_of(1, 6 * P), 2 * P);
  world.submit(big);
  world.pump();
  const auto home = world.shards_asked(1)[0];
  auto other = world.request(prompt_of(1, 6 * P), 5);
  other.salt = 8; // nothing to share
  other.affinity = 1;
  big.affinity = 1;
  // Find an affinity that leads to the full shard.
  for (std::uint64_t key = 1; key < 50; ++key) {
    other = world.request(prompt_of(1, 6 * P), 5);
    other.salt = 8;
    other.affinity = key;
    world.submit(other);
    world.pump();
    if (world.shards_asked(other.id.number)[0] == home)
      break;
    world.run_until_idle();
    big = world.request(prompt_of(1, 6 * P), 2 * P);
    world.submit(big);
    world.pump();
    REQUIRE(world.shards_asked(big.id.number)[0] == home);
  }
  CHECK(world.shards_asked(other.id.number) == std::vector<std::uint32_t>{home, 1 - home});
  CHECK(world.has_lease(other.id.number));
  world.run_until_idle();
  world.check_all_returned();
}

TEST_CASE("a shard that does not answer is asked again, and the request fails when it never does") {
  batch_world world(small_config());
  world.refuse_next(errc::timeout, limits::reservation_failures_max - 1);
  const auto& s = world.submit(world.request(prompt_of(1, 10), 5));
  world.run_until_idle();
  CHECK(s.finished);
  world.refuse_next(errc::timeout, limits::reservation_failures_max);
  const auto& t = world.submit(world.request(prompt_of(1, 10), 5));
  world.pump();
  REQUIRE(t.failed);
  CHECK(t.failed->fault.code == errc::unavailable);
  world.check_all_returned();
}

TEST_CASE("a shard that has the whole pool to give and refuses ends the request") {
  batch_world world(small_config());
  world.refuse_next(errc::no_memory, 1);
  const auto& s = world.submit(world.request(prompt_of(1, 10), 5));
  world.pump();
  REQUIRE(s.failed);
  CHECK(s.failed->fault.code == errc::no_memory);
  world.check_all_returned();
}

TEST_CASE("a sequence whose lease the shard forgot starts again with other pages") {
  batch_world world(small_config());
  const auto& s = world.submit(world.request(prompt_of(1, P), 3 * P));
  world.turn();
  world.memory(0).release_all();
  while (s.generated() < P)
    world.turn();
  world.run_until_idle();
  CHECK(s.finished->usage.completion_tokens == 3 * P);
  CHECK(world.shards_asked(1).size() == 2);
  world.check_all_returned();
}

// -- losses and failures --

TEST_CASE("a shard's loss costs its sequences a new prefill and no token, and its successor's pages wait for the step's end") {
  batch_world world(small_config({16, 16}));
  for (int i = 1; i <= 6; ++i)
    world.submit(world.request(prompt_of(i, 20), 40));
  for (int i = 0; i < 20; ++i)
    world.turn();
  REQUIRE(world.step_running());
  const auto shard = world.shards_asked(1)[0];
  const auto steps = world.steps_started();
  world.kill_shard(shard);
  world.notice_lost(shard);
  world.restart_shard(shard);
  world.pump(); // the new shard grants pages that the step in flight may write
  CHECK(world.steps_started() == steps);
  world.run_until_idle(); // the world sees any page that two write
  CHECK(world.schedule().stats().requeued >= 1);
  for (std::uint64_t n = 1; n <= 6; ++n)
    CHECK(world.session(n).finished->usage.completion_tokens == 40);
  world.check_all_returned();
}

TEST_CASE("with no shard alive requests wait for one") {
  batch_world world(small_config());
  world.kill_shard(0);
  world.notice_lost(0);
  const auto& s = world.submit(world.request(prompt_of(1, 20), 4));
  world.pump();
  CHECK_FALSE(s.ended());
  CHECK_FALSE(world.step_running());
  world.restart_shard(0);
  world.run_until_idle();
  CHECK(s.finished);
}

TEST_CASE("answers of a shard that is gone change nothing") {
  batch_world world(small_config());
  world.submit(world.request(prompt_of(1, 20), 4));
  world.deliver_to_shard(0); // the grant is on its way
  world.kill_shard(0);
  world.notice_lost(0);
  world.restart_shard(0);
  world.deliver_from_shard(0); // the old grant
  CHECK(world.schedule().stats().late_answers == 1);
  CHECK_FALSE(world.step_running());
  world.run_until_idle();
  CHECK(world.session(1).finished);
  world.check_all_returned();
}

TEST_CASE("a step that fails is tried again, each sequence alone") {
  batch_world world(small_config());
  for (int i = 1; i <= 3; ++i)
    world.submit(world.request(prompt_of(i, 8), 10));
  world.pump();
  world.turn();
  CHECK(world.plan().sequences.size() == 3);
  world.fail_step();
  for (std::uint64_t n = 1; n <= 3; ++n) {
    CHECK(world.plan().sequences.size() == 1);
    CHECK(world.plan().sequences[0].id.number == n);
    world.turn();
  }
  CHECK(world.plan().sequences.size() == 3);
  world.run_until_idle();
  for (std::uint64_t n = 1; n <= 3; ++n)
    CHECK(world.session(n).finished->usage.completion_tokens == 10);
}

TEST_CASE("only failures in a row count") {
  batch_world world(small_config());
  world.submit(world.request(prompt_of(1, 8), 10));
  world.pump();
  for (int i = 0; i < 4; ++i) {
    world.fail_step();
    world.turn();
  }
  world.run_until_idle();
  CHECK(world.session(1).finished->usage.completion_tokens == 10);
  CHECK(world.schedule().stats().failed_steps == 4);
}

TEST_CASE("one sequence that breaks every step it is in ends alone") {
  batch_world world(small_config());
  for (int i = 1; i <= 3; ++i)
    world.submit(world.request(prompt_of(i, 8), 10));
  world.pump();
  while (!world.schedule().idle()) {
    const auto& sequences = world.plan().sequences;
    if (std::any_of(sequences.begin(), sequences.end(), [](const auto& s) { return s.id.number == 2; }))
      world.fail_step();
    else
      world.end_step();
    world.pump();
  }
  CHECK(world.session(1).finished);
  CHECK(world.session(3).finished);
  REQUIRE(world.session(2).failed);
  CHECK(world.session(2).failed->fault.code == errc::device_failed);
  CHECK(world.schedule().stats().failed_steps == 2);
  world.check_all_returned();
}

TEST_CASE("a fault that names one sequence ends that one") {
  batch_world world(small_config());
  for (int i = 1; i <= 3; ++i)
    world.submit(world.request(prompt_of(i, 8), 10));
  world.turn();
  world.end_step({2});
  world.run_until_idle();
  REQUIRE(world.session(2).failed);
  CHECK(world.session(2).failed->fault.code == errc::internal);
  CHECK(world.session(1).finished->usage.completion_tokens == 10);
  CHECK(world.session(3).finished->usage.completion_tokens == 10);
  world.check_all_returned();
}

TEST_CASE("steps wait while the compute stream is dead and go on where they were") {
  batch_world world(small_config());
  world.submit(world.request(prompt_of(1, 40), 10));
  world.turn();
  world.turn();
  world.kill_compute();
  world.submit(world.request(prompt_of(2, 10), 10));
  world.pump();
  CHECK_FALSE(world.step_running());
  world.restart_compute();
  world.run_until_idle();
  CHECK(world.session(1).finished->usage.completion_tokens == 10);
  CHECK(world.session(2).finished->usage.completion_tokens == 10);
  world.check_all_returned();
}

TEST_CASE("requests that are submitted again after the batcher's death go on with the same tokens") {
  batch_world world(small_config({16, 16}));
  for (int i = 1; i <= 12; ++i)
    world.submit(world.request(prompt_of(i % 3, 30), 25));
  for (int i = 0; i < 12; ++i)
    world.turn();
  world.restart_batcher(); // while the dead one's step still runs
  world.run_until_idle();
  for (std::uint64_t n = 1; n <= 12; ++n)
    CHECK(world.session(n).finished->usage.completion_tokens == 25);
  world.check_all_returned();
}

TEST_CASE("a request that is submitted again when nothing is left to generate ends at once") {
  batch_world world(small_config());
  auto r = world.request(prompt_of(1, 20), 5);
  world.submit(r);
  world.run_until_idle();
  auto again = world.request(world.session(1).tokens, 5);
  again.sampling = r.sampling;
  again.prompt_length = 20;
  again.id.generation = 1;
  const auto& s = world.submit(again);
  REQUIRE(s.finished);
  CHECK(s.finished->reason == sequence_end::length);
  CHECK(s.finished->usage.completion_tokens == 5);
}

TEST_CASE("a configuration outside the limits is our own mistake") {
  auto with = [](auto change) {
    auto c = small_config();
    change(c);
    batch_schedule schedule(c);
  };
  CHECK_THROWS_AS(with([](auto& c) { c.shard_pages.clear(); }), check_failed);
  CHECK_THROWS_AS(with([](auto& c) { c.shard_pages = {0}; }), check_failed);
  CHECK_THROWS_AS(with([](auto& c) { c.running_max = limits::running_sequences_max + 1; }), check_failed);
  CHECK_THROWS_AS(with([](auto& c) { c.waiting_max = limits::waiting_requests_max + limits::running_sequences_max + 1; }), check_failed);
  CHECK_THROWS_AS(with([](auto& c) { c.step_tokens = limits::step_tokens_max + 1; }), check_failed);
  CHECK_NOTHROW(with([](auto&) {}));
}
