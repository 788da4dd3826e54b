// Actors die at every moment; streams go on with the same tokens, none lost, none repeated, and every sink ends once.
#include <doctest/doctest.h>

#include "tests/actors/fixture.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

std::vector<std::shared_ptr<collecting_sink>> ask_all(company_fixture& house) {
  std::vector<std::shared_ptr<collecting_sink>> out;
  out.push_back(house.ask(std::string(40, 'a'), 12, 1));
  out.push_back(house.ask(std::string(40, 'a') + "b", 9, 2)); // shares a prefix with the first
  out.push_back(house.ask("short", 14, 3));
  return out;
}

bool all_ended(const std::vector<std::shared_ptr<collecting_sink>>& sinks) {
  for (const auto& sink : sinks)
    if (sink->ends() == 0)
      return false;
  return true;
}

// Restarts that wait for their delay count, too.
bool all_at_work(const company_fixture& house) {
  const auto peers = house.front->peers();
  bool alive = peers->metrics.alive() && peers->compute.alive() && peers->batcher.alive() && peers->bridge.alive();
  for (const auto& shard : peers->shards)
    alive = alive && shard.alive();
  for (const auto& worker : peers->workers)
    alive = alive && worker.alive();
  return alive;
}

struct reference {
  std::vector<std::string> texts;
  int steps = 0;
};

const reference& undisturbed() {
  static const reference out = [] {
    reference r;
    company_fixture house;
    const auto sinks = ask_all(house);
    while (house.step())
      ++r.steps;
    for (const auto& sink : sinks)
      r.texts.push_back(sink->text());
    return r;
  }();
  return out;
}

// Kills one actor after `at` messages and sees that nobody's answer changes.
void kill_at(actor_kind kind, std::uint64_t index, int at) {
  CAPTURE(name_of(kind));
  CAPTURE(index);
  CAPTURE(at);
  company_fixture house;
  const auto sinks = ask_all(house);
  for (int i = 0; i < at; ++i)
    house.step();
  house.kill(kind, index);
  house.run_until([&] { return all_ended(sinks) && all_at_work(house); });
  for (std::size_t i = 0; i < sinks.size(); ++i) {
    CAPTURE(i);
    REQUIRE(sinks[i]->ends() == 1);
    CHECK(sinks[i]->after_end() == 0);
    // A bridge that dies takes the requests in its mailbox with it; they end with a clear error.
    if (kind == actor_kind::edge_bridge && sinks[i]->failed()) {
      CHECK(sinks[i]->failed()->fault.code == errc::unavailable);
      CHECK(sinks[i]->text().empty());
      continue;
    }
    CHECK(sinks[i]->finished());
    CHECK(sinks[i]->text() == undisturbed().texts[i]);
    CHECK(sinks[i]->all<generation_started>().size() == 1);
  }
  house.run();
  CHECK(house.all_pages_back());
  CHECK(house.slots->count() == 0);
  // The successor serves.
  const auto next = house.ask("after", 3);
  house.run();
  CHECK(next->text().size() == 3);
  std::string why;
  CHECK(house.port->health(why) == health_state::ready);
}

void kill_everywhere(actor_kind kind, std::uint64_t index) {
  for (int at = 0; at <= undisturbed().steps; ++at)
    kill_at(kind, index, at);
}

} // namespace

TEST_CASE("the batcher may die after any message") {
  kill_everywhere(actor_kind::batcher, 0);
}
TEST_CASE("the first shard may die after any message") {
  kill_everywhere(actor_kind::kv_shard, 0);
}
TEST_CASE("the second shard may die after any message") {
  kill_everywhere(actor_kind::kv_shard, 1);
}
TEST_CASE("the compute stream may die after any message") {
  kill_everywhere(actor_kind::compute_stream, 0);
}
TEST_CASE("a worker may die after any message") {
  kill_everywhere(actor_kind::worker, 1);
}
TEST_CASE("metrics may die after any message") {
  kill_everywhere(actor_kind::metrics, 0);
}
TEST_CASE("the edge bridge may die after any message") {
  kill_everywhere(actor_kind::edge_bridge, 0);
}

TEST_CASE("a session that dies fails its own request alone") {
  for (int at = 1; at <= undisturbed().steps; ++at) {
    CAPTURE(at);
    company_fixture house;
    const auto sinks = ask_all(house);
    for (int i = 0; i < at; ++i)
      house.step();
    house.kill(actor_kind::session, 2);
    house.run();
    for (std::size_t i = 0; i < sinks.size(); ++i) {
      REQUIRE(sinks[i]->ends() == 1);
      CHECK(sinks[i]->after_end() == 0);
      if (i == 1 && sinks[i]->failed())
        CHECK(sinks[i]->failed()->fault.code == errc::unavailable);
      else
        CHECK(sinks[i]->text() == undisturbed().texts[i]);
    }
    CHECK(house.all_pages_back());
    CHECK(house.slots->count() == 0);
  }
}

TEST_CASE("cancelled while the bridge is dead, a request still ends") {
  for (int at = 4; at <= undisturbed().steps; at += 3) {
    CAPTURE(at);
    company_fixture house;
    const auto sinks = ask_all(house);
    for (int i = 0; i < at; ++i)
      house.step();
    house.kill(actor_kind::edge_bridge, 0);
    house.step();
    house.port->cancel(2);
    house.run();
    CHECK(sinks[1]->ends() == 1);
    CHECK(house.all_pages_back());
  }
}

TEST_CASE("random deaths in random orders lose and repeat no token") {
  constexpr actor_kind kinds[] = {actor_kind::batcher,        actor_kind::kv_shard, actor_kind::kv_shard,
                                  actor_kind::compute_stream, actor_kind::worker,   actor_kind::metrics};
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    CAPTURE(seed);
    company_fixture house;
    house.shuffle(seed);
    std::uint64_t counter = 0;
    const auto draw = [&](std::uint64_t n) { return random_at(~seed, counter++) % n; };
    const auto sinks = ask_all(house);
    for (std::uint64_t deaths = 1 + draw(4); deaths > 0; --deaths) {
      for (auto steps = draw(60); steps > 0; --steps)
        house.step();
      const auto kind = kinds[draw(6)];
      house.kill(kind, kind == actor_kind::kv_shard || kind == actor_kind::worker ? draw(2) : 0);
    }
    house.run_until([&] { return all_ended(sinks) && all_at_work(house); });
    for (std::size_t i = 0; i < sinks.size(); ++i) {
      REQUIRE(sinks[i]->ends() == 1);
      if (sinks[i]->failed())
        FAIL_CHECK(sinks[i]->failed()->fault.message);
      CHECK(sinks[i]->text() == undisturbed().texts[i]);
    }
    house.run();
    CHECK(house.all_pages_back());
    CHECK(house.slots->count() == 0);
  }
}

TEST_CASE("an actor that dies too often makes the health failing, ends all requests, and new ones are refused") {
  company_fixture house;
  const auto sinks = ask_all(house);
  std::string why;
  for (int i = 0; i <= limits::restarts_max; ++i) {
    CHECK(house.port->health(why) == health_state::ready);
    house.kill(actor_kind::batcher);
    house.step();
    house.run_until([&] { return house.front->peers()->batcher.alive(); });
    if (i < limits::restarts_max)
      CHECK(house.front->peers()->batcher.alive());
  }
  // Either all were served between the deaths, or they ended with the reason.
  for (const auto& sink : sinks)
    CHECK(sink->ends() == 1);
  CHECK(house.port->health(why) == health_state::failing);
  CHECK(why == "batcher 0 died 11 times within 60 s");
  generation_request request;
  request.prompt = "anyone?";
  CHECK(house.submit(request, std::make_shared<collecting_sink>()).fault().code == errc::unavailable);
}

TEST_CASE("deaths far apart are no failure") {
  company_fixture house;
  std::string why;
  for (int i = 0; i < 3 * limits::restarts_max; ++i) {
    house.kill(actor_kind::batcher);
    house.run();
    house.advance(std::chrono::seconds(10));
  }
  CHECK(house.port->health(why) == health_state::ready);
  const auto sink = house.ask("still here", 4);
  house.run();
  CHECK(sink->text().size() == 4);
}

TEST_CASE("stopping at any moment ends every sink once and leaves no actor") {
  for (int at = 0; at <= undisturbed().steps; at += 2) {
    CAPTURE(at);
    company_fixture house;
    const auto sinks = ask_all(house);
    for (int i = 0; i < at; ++i)
      house.step();
    house.stop();
    for (const auto& sink : sinks) {
      CHECK(sink->ends() == 1);
      CHECK(sink->after_end() == 0);
    }
    CHECK(house.slots->count() == 0);
  }
}
