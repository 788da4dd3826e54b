// Several answers to one request: the prompt is computed once, each choice is its own, all are accepted or none.
#include <doctest/doctest.h>

#include "tests/actors/fixture.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

using sinks = std::vector<std::shared_ptr<collecting_sink>>;

generation_request question(std::optional<std::uint64_t> seed = 7, int max_tokens = 12) {
  generation_request r;
  r.messages.push_back({"user", "Tell me of the many kinds of tea, and of the pots that go with them.", {}, {}, {}});
  r.max_tokens = max_tokens;
  r.sampling.seed = seed;
  return r;
}

company_options roomy() {
  company_options o;
  o.context_tokens = 512;
  o.device->pages = 256;
  o.device->step_tokens_max = 128;
  o.step_tokens = 128;
  return o;
}

sinks made(std::size_t count) {
  sinks out;
  for (std::size_t i = 0; i < count; ++i)
    out.push_back(std::make_shared<collecting_sink>());
  return out;
}

result<std::vector<std::uint64_t>> submit(company_fixture& house, generation_request request, const sinks& choices) {
  return house.port->submit_choices(std::move(request), {choices.begin(), choices.end()});
}

// Stops as soon as it holds, in the middle of things.
void step_until(company_fixture& house, const std::function<bool()>& done) {
  while (!done() && house.step()) {
  }
  REQUIRE(done());
}

std::string all_text(const collecting_sink& sink) {
  return sink.reasoning() + sink.text();
}

} // namespace

TEST_CASE("the prompt of several choices is computed once, and the others start with no forward pass") {
  company_fixture house(roomy());
  const auto choices = made(3);
  REQUIRE(submit(house, question(), choices));
  house.run();
  const int prompt = choices[0]->finished()->usage.prompt_tokens;
  CHECK(choices[0]->finished()->usage.cached_tokens == 0);
  for (std::size_t i = 1; i < 3; ++i) {
    CHECK(choices[i]->finished()->usage.prompt_tokens == prompt);
    CHECK(choices[i]->finished()->usage.cached_tokens == prompt);
  }
  CHECK(house.device->resumed == 2);
  CHECK(house.device->tokens == prompt + 3 * 11);
  CHECK(house.slots->count() == 0);
  CHECK(house.all_pages_back());
}

TEST_CASE("the first choice is the only one's answer, the others have seeds of their own that repeat") {
  std::string alone;
  {
    company_fixture house(roomy());
    const auto sink = house.ask(question());
    house.run();
    alone = all_text(*sink);
  }
  std::vector<std::string> before;
  for (int repeat = 0; repeat < 2; ++repeat) {
    company_fixture house(roomy());
    const auto choices = made(4);
    REQUIRE(submit(house, question(), choices));
    house.run();
    std::vector<std::string> texts;
    for (const auto& each : choices)
      texts.push_back(all_text(*each));
    CHECK(texts[0] == alone);
    for (std::size_t i = 0; i < 4; ++i)
      for (std::size_t j = 0; j < i; ++j)
        CHECK(texts[i] != texts[j]);
    CHECK((before.empty() || before == texts));
    before = texts;
  }
  company_fixture house(roomy());
  const auto second = house.ask(question(choice_seed(7, 1)));
  house.run();
  CHECK(all_text(*second) == before[1]);
}

TEST_CASE("choices without a seed differ, too") {
  company_fixture house(roomy());
  const auto choices = made(2);
  REQUIRE(submit(house, question(std::nullopt), choices));
  house.run();
  CHECK(all_text(*choices[0]) != all_text(*choices[1]));
}

TEST_CASE("choices count as requests in flight, and are accepted all or none") {
  auto options = roomy();
  options.running_max = 2;
  options.waiting_max = 2;
  company_fixture house(options);
  const auto too_many = made(5);
  const auto refused = submit(house, question(), too_many);
  REQUIRE_FALSE(refused);
  CHECK(refused.fault().code == errc::invalid_argument); // they would never fit
  CHECK(house.slots->count() == 0);
  const auto first = made(3);
  REQUIRE(submit(house, question(), first));
  CHECK(house.slots->count() == 3);
  const auto full = submit(house, question(), made(2));
  REQUIRE_FALSE(full);
  CHECK(full.fault().code == errc::queue_full);
  CHECK(house.slots->count() == 3);
  house.run();
  for (const auto& each : first)
    CHECK(each->finished());
  CHECK(house.slots->count() == 0);
  REQUIRE(submit(house, question(), made(4)));
  house.run();
}

TEST_CASE("cancelling ends every choice, those that wait and those that run") {
  for (const bool early : {true, false}) {
    CAPTURE(early);
    company_fixture house(roomy());
    const auto choices = made(3);
    const auto numbers = submit(house, question(7, 100), choices);
    REQUIRE(numbers);
    REQUIRE(numbers->size() == 3);
    if (!early)
      step_until(house, [&] { return choices[2]->events().size() > 3; });
    for (const std::uint64_t number : *numbers)
      house.port->cancel(number);
    house.run();
    for (const auto& each : choices) {
      REQUIRE(each->finished());
      CHECK(each->ends() == 1);
      CHECK(each->finished()->reason == finish_reason::cancelled);
    }
    CHECK(house.slots->count() == 0);
    CHECK(house.all_pages_back());
  }
}

TEST_CASE("a prompt that fails fails every choice with the same words") {
  company_fixture house(roomy());
  auto request = question();
  request.messages[0].content = std::string(600, 'x');
  const auto choices = made(3);
  REQUIRE(submit(house, request, choices));
  house.run();
  for (const auto& each : choices) {
    REQUIRE(each->failed());
    CHECK(each->failed()->fault.code == errc::context_full);
    CHECK(each->failed()->fault.message == choices[0]->failed()->fault.message);
  }
  CHECK(house.slots->count() == 0);
}

TEST_CASE("choices live through the death of any actor, and each keeps its answer") {
  std::vector<std::string> expected;
  {
    company_fixture house(roomy());
    const auto choices = made(3);
    REQUIRE(submit(house, question(), choices));
    house.run();
    for (const auto& each : choices)
      expected.push_back(all_text(*each));
  }
  for (const auto kind : {actor_kind::batcher, actor_kind::kv_shard, actor_kind::compute_stream, actor_kind::edge_bridge}) {
    for (const std::size_t moment : {0u, 1u, 4u}) {
      CAPTURE(name_of(kind));
      CAPTURE(moment);
      company_fixture house(roomy());
      const auto choices = made(3);
      REQUIRE(submit(house, question(), choices));
      step_until(house, [&] { return choices[moment == 4 ? 2 : 0]->events().size() >= moment; });
      house.kill(kind);
      house.run_until([&] { return choices[0]->ends() + choices[1]->ends() + choices[2]->ends() == 3; });
      for (std::size_t i = 0; i < 3; ++i) {
        CHECK(choices[i]->ends() == 1);
        if (choices[i]->finished()) // a message that died with the bridge costs its choice an unavailable error
          CHECK(all_text(*choices[i]) == expected[i]);
        else
          CHECK(choices[i]->failed()->fault.code == errc::unavailable);
        CHECK((choices[i]->finished() || kind == actor_kind::edge_bridge));
      }
      CHECK(house.slots->count() == 0);
    }
  }
}
