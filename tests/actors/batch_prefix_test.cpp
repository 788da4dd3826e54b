// What batch_schedule does with what shards know of a prompt: copies, states, pins, the choice of the shard.
#include <doctest/doctest.h>

#include "batch_world.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr int P = limits::page_tokens;

// The same request once more, under a new number; the seed decides the answer.
batch_request again(batch_world& world, const batch_request& r) {
  auto out = world.request(*r.tokens, r.max_new_tokens);
  out.prompt_length = r.prompt_length;
  out.sampling = r.sampling;
  return out;
}

std::vector<token_id> answer_of(const session_record& s) {
  return {s.tokens.begin() + s.request.prompt_length, s.tokens.end()};
}

} // namespace

TEST_CASE("a copy is in the first plan of its sequence and in no later one") {
  batch_world world(small_config(), {});
  world.submit(world.request(prompt_of(1, 20), 1));
  world.run_until_idle();
  auto longer = prompt_of(1, 70);
  world.submit(world.request(longer, 4));
  world.pump();
  REQUIRE(world.plan().copies.size() == 1);
  const auto& part = world.plan().sequences[0];
  CHECK(part.position == 20);
  CHECK(world.plan().copies[0].to == (*part.pages)[1]);
  CHECK(world.plan().copies[0].from != (*part.pages)[1]);
  world.turn();
  CHECK(world.plan().copies.empty());
  world.run_until_idle();
  CHECK(world.session(2).first->usage.cached_tokens == 20);
  world.check_all_returned();
}

TEST_CASE("a copy is made again when its step failed, and when the compute stream died in it") {
  for (const bool death : {false, true}) {
    CAPTURE(death);
    batch_world world(small_config(), {});
    world.submit(world.request(prompt_of(1, 20), 1));
    world.run_until_idle();
    const auto& s = world.submit(world.request(prompt_of(1, 40), 3));
    world.pump();
    REQUIRE(world.plan().copies.size() == 1);
    if (death) {
      world.kill_compute();
      world.restart_compute();
    } else {
      world.fail_step();
    }
    REQUIRE(world.plan().copies.size() == 1);
    world.run_until_idle(); // the world compares what the pages hold
    CHECK(s.finished);
    world.check_all_returned();
  }
}

TEST_CASE("a request that ends before its copy is made publishes nothing of it") {
  batch_world world(small_config(), {});
  world.submit(world.request(prompt_of(1, 20), 1));
  world.run_until_idle();
  world.kill_compute();
  const auto& s = world.submit(world.request(prompt_of(1, 40), 3));
  world.pump();
  world.cancel(s.request.id);
  world.pump();
  world.check_all_returned();
  CHECK(world.memory(0).stats().cached == 2);
  world.restart_compute();
  world.submit(world.request(prompt_of(1, 40), 3));
  world.run_until_idle();
  world.check_all_returned();
}

TEST_CASE("an identical prompt starts with no forward pass and gives the same answer for the same seed") {
  for (const int length : {1, 10, P, 2 * P, 50}) {
    CAPTURE(length);
    batch_world world(small_config());
    const auto r = world.request(prompt_of(1, length), 12);
    const auto& first = world.submit(r);
    world.run_until_idle();
    const auto computed = world.schedule().stats().prefill_tokens;
    const auto& second = world.submit(again(world, r));
    world.pump();
    REQUIRE(world.plan().sequences.size() == 1);
    CHECK(world.plan().sequences[0].tokens.empty());
    CHECK(world.plan().sequences[0].sample);
    world.run_until_idle();
    CHECK(answer_of(second) == answer_of(first));
    CHECK(second.finished->usage.cached_tokens == length);
    CHECK(world.schedule().stats().prefill_tokens == computed);
    CHECK(world.schedule().stats().resumed == 1);
    auto other = again(world, r);
    sampling_params sampling;
    sampling.seed = 99;
    other.sampling = std::make_shared<const sampling_params>(sampling);
    const auto& third = world.submit(other); // regenerated with another seed
    world.run_until_idle();
    CHECK(third.finished->usage.cached_tokens == length);
    CHECK(world.schedule().stats().resumed == 2);
    world.check_all_returned();
  }
}

TEST_CASE("several that resume and others share one step, and a failed step loses nothing") {
  batch_world world(small_config({128}));
  const auto r = world.request(prompt_of(1, 21), 6);
  world.submit(r);
  world.run_until_idle();
  world.kill_compute();
  for (int i = 0; i < 3; ++i)
    world.submit(again(world, r));
  world.submit(world.request(prompt_of(2, 40), 3));
  world.pump();
  world.restart_compute();
  CHECK(world.plan().sequences.size() == 4);
  CHECK(world.plan().copies.size() == 3);
  world.fail_step();
  world.run_until_idle();
  CHECK(world.schedule().stats().resumed == 3);
  for (std::uint64_t n = 2; n <= 4; ++n)
    CHECK(answer_of(world.session(n)) == answer_of(world.session(1)));
  world.check_all_returned();
}

TEST_CASE("with states switched off none is asked for and an identical prompt computes its last token") {
  auto c = small_config();
  c.prompt_states = false;
  batch_world world(c);
  const auto r = world.request(prompt_of(1, 21), 6);
  world.submit(r);
  world.pump();
  CHECK_FALSE(world.plan().sequences[0].keep_state);
  world.run_until_idle();
  world.submit(again(world, r));
  world.pump();
  CHECK(world.plan().sequences[0].tokens.size() == 1);
  world.run_until_idle();
  CHECK(world.memory(0).stats().states == 0);
}

TEST_CASE("a warm-up pins what it reads when asked to, and a long chat does not push it out") {
  batch_world world(small_config({32}));
  auto warm = world.request(prompt_of(1, 100), 0);
  warm.pin = true;
  world.submit(warm);
  world.run_until_idle();
  CHECK(world.memory(0).stats().pinned == 7);
  for (int i = 2; i < 20; ++i)
    world.submit(world.request(prompt_of(i, 200), 5));
  world.run_until_idle();
  const auto& s = world.submit(world.request(prompt_of(1, 110), 1));
  world.run_until_idle();
  CHECK(s.finished->usage.cached_tokens == 100);
}

TEST_CASE("two chats with one beginning meet where it lies, also when their first page is everybody's") {
  batch_world world(small_config({200, 200, 200, 200}));
  auto prompt = [](int kind, int length) { // all begin alike
    auto out = prompt_of(0, 2 * P);
    const auto rest = prompt_of(kind, length);
    out.insert(out.end(), rest.begin(), rest.end());
    return out;
  };
  for (int kind = 1; kind <= 6; ++kind)
    world.submit(world.request(prompt(kind, 100), 1));
  world.run_until_idle();
  for (int kind = 1; kind <= 6; ++kind) {
    const auto& s = world.submit(world.request(prompt(kind, 150), 1));
    world.run_until_idle();
    CHECK(s.finished->usage.cached_tokens >= 2 * P + 100);
    CHECK(world.shards_asked(s.request.id.number).size() == 1);
  }
}

TEST_CASE("chats that share only a short beginning spread over the shards, and each stays where it began") {
  batch_world world(small_config({64, 64}));
  constexpr int chats = 8, turns = 6;
  auto turn = [&](int chat, int number) { // 2 pages in common, then 2 more each turn
    auto out = prompt_of(0, 2 * P);
    const auto rest = prompt_of(chat, 2 * P * number);
    out.insert(out.end(), rest.begin(), rest.end());
    return world.request(out, 1);
  };
  for (int number = 1; number <= turns; ++number)
    for (int chat = 1; chat <= chats; ++chat) {
      const auto& s = world.submit(turn(chat, number));
      world.run_until_idle();
      if (number > 1)
        CHECK(s.finished->usage.cached_tokens == 2 * P * number);
    }
  // 8 chats of 14 pages fit into both shards together, and in no way into one.
  CHECK(world.memory(0).stats().evicted_pages == 0);
  CHECK(world.memory(1).stats().evicted_pages == 0);
}

TEST_CASE("a beginning that many share spreads to a second shard once it has cost as much as it is worth") {
  batch_world world(small_config({40, 40}));
  auto chat = [&](int kind) { // 10 pages in common, 5 of its own
    auto out = prompt_of(0, 10 * P);
    const auto rest = prompt_of(kind, 5 * P - 4);
    out.insert(out.end(), rest.begin(), rest.end());
    return world.request(out, 3);
  };
  for (int kind = 1; kind <= 30; ++kind) {
    world.submit(chat(kind));
    world.run_until_idle();
  }
  CHECK(world.schedule().stats().spilled >= 1);
  CHECK(world.memory(0).stats().cached > 10);
  CHECK(world.memory(1).stats().cached > 10);
  // Most found the beginning all the same.
  CHECK(world.memory(0).stats().hit_tokens + world.memory(1).stats().hit_tokens >= static_cast<std::uint64_t>(26 * 10 * P));
}
