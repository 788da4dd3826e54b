// The company at work, message by message.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/actors/fixture.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

generation_request chat(std::string user) {
  generation_request request;
  request.messages.push_back({"user", std::move(user), "", {}, ""});
  request.sampling.seed = 7;
  return request;
}

std::vector<token_id> bytes(std::string_view text) {
  std::vector<token_id> out;
  for (const char c : text)
    out.push_back(static_cast<unsigned char>(c));
  return out;
}

// `needles` stand in the trace in this order, perhaps with others between.
bool in_order(const std::vector<std::string>& trace, const std::vector<std::string>& needles) {
  auto at = trace.begin();
  for (const auto& needle : needles) {
    at = std::find(at, trace.end(), needle);
    if (at == trace.end())
      return false;
    ++at;
  }
  return true;
}

// Scripted answers for a chat whose prompt's length is not known beforehand: everything behind the last "assistant\n".
token_chooser answers(std::vector<token_id> answer) {
  return [answer = std::move(answer)](const std::vector<token_id>& so_far, const sampling_params&) {
    static const auto mark = bytes("assistant\n");
    const auto begin = std::find_end(so_far.begin(), so_far.end(), mark.begin(), mark.end()) + 10;
    const auto at = static_cast<std::size_t>(so_far.end() - begin);
    return at < answer.size() ? answer[at] : added::im_end;
  };
}

} // namespace

TEST_CASE("one request passes through the company in a fixed order") {
  company_fixture house;
  const auto sink = house.ask("The quick brown fox", 3);
  house.run();

  CHECK(in_order(house.trace(),
                 {"edge_bridge open_session", "worker prepare_prompt", "session prompt_prepared", "batcher submit_request",
                  "kv_shard reserve_pages", "batcher page_answer", "compute_stream run_step", "batcher step_ended",
                  "session tokens_generated", "compute_stream run_step", "batcher step_ended", "session tokens_generated",
                  "compute_stream run_step", "batcher step_ended", "session tokens_generated", "session request_finished",
                  "edge_bridge session_closed"}));
  CHECK(std::count(house.trace().begin(), house.trace().end(), "compute_stream run_step") == 3);

  const auto events = sink->events();
  REQUIRE(events.size() == 5);
  CHECK(std::get<generation_started>(events[0]).prompt_tokens == 19);
  CHECK(sink->text().size() == 3);
  const auto end = sink->finished();
  REQUIRE(end);
  CHECK(end->reason == finish_reason::length);
  CHECK(end->usage.prompt_tokens == 19);
  CHECK(end->usage.completion_tokens == 3);
  CHECK(house.all_pages_back());
  CHECK(house.slots->count() == 0);
}

TEST_CASE("the same inputs give the same trace, message by message") {
  const auto trace = [] {
    company_fixture house;
    for (int i = 0; i < 3; ++i)
      house.ask("prompt " + std::to_string(i), 4);
    house.run();
    return house.trace();
  };
  CHECK(trace() == trace());
}

TEST_CASE("a sequence's tokens don't depend on what it is batched with") {
  std::vector<std::string> alone;
  for (int i = 0; i < 8; ++i) {
    company_fixture house;
    const auto sink = house.ask("tell me about " + std::to_string(i), 20, static_cast<std::uint64_t>(i));
    house.run();
    alone.push_back(sink->text());
  }
  company_options options;
  options.running_max = 8;
  company_fixture house(options);
  std::vector<std::shared_ptr<collecting_sink>> sinks;
  for (int i = 0; i < 8; ++i)
    sinks.push_back(house.ask("tell me about " + std::to_string(i), 20, static_cast<std::uint64_t>(i)));
  house.run();
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK(sinks[i]->text() == alone[i]);
    CHECK(sinks[i]->text().size() == 20);
  }
  // They really shared steps: far fewer than 8 x 20.
  CHECK(house.device->steps < 60);
  CHECK(house.all_pages_back());
}

TEST_CASE("more requests than can run wait and are all served") {
  company_fixture house; // 4 run, 8 wait
  std::vector<std::shared_ptr<collecting_sink>> sinks;
  for (int i = 0; i < 12; ++i)
    sinks.push_back(house.ask("question " + std::to_string(i), 10));
  house.run();
  for (const auto& sink : sinks) {
    CHECK(sink->ends() == 1);
    CHECK(sink->text().size() == 10);
  }
  CHECK(house.all_pages_back());
}

TEST_CASE("overload is refused before anything is tokenised") {
  company_fixture house; // 12 places
  std::vector<std::shared_ptr<collecting_sink>> sinks;
  for (int i = 0; i < 12; ++i)
    sinks.push_back(house.ask("x", 4));
  auto sink = std::make_shared<collecting_sink>();
  generation_request request;
  request.prompt = "one too many";
  const auto refused = house.submit(request, sink);
  REQUIRE_FALSE(refused);
  CHECK(refused.fault().code == errc::queue_full);
  CHECK(house.context->metrics->requests_refused == 1);
  CHECK(house.context->metrics->prompts_prepared == 0);
  house.run();
  CHECK(house.context->metrics->prompts_prepared == 12);
  CHECK(sink->events().empty());
  CHECK(house.submit(request, sink)); // places are free again
  house.run();
  CHECK(sink->ends() == 1);
}

TEST_CASE("requests that can't work are refused at the gate or end with their error") {
  company_fixture house;
  auto sink = std::make_shared<collecting_sink>();
  CHECK(house.submit({}, sink).fault().code == errc::invalid_argument);
  generation_request both;
  both.prompt = "x";
  both.prompt_tokens = {1};
  CHECK(house.submit(both, sink).fault().code == errc::invalid_argument);
  CHECK(sink->events().empty());

  const auto error_of = [&house](generation_request request) {
    const auto told = house.ask(std::move(request));
    house.run();
    CHECK(told->ends() == 1);
    CHECK(told->all<generation_started>().empty());
    return told->failed() ? told->failed()->fault : error{errc::ok, ""};
  };
  generation_request request;
  request.prompt = std::string(256, 'x');
  CHECK(error_of(request).code == errc::context_full);
  CHECK(error_of(request).message.find("256") != std::string::npos);
  request.prompt = "";
  CHECK(error_of(request).code == errc::invalid_argument);
  request.prompt = "x";
  request.sampling.temperature = 3.0f;
  CHECK(error_of(request).message.find("temperature is 3; it must lie within 0 and 2") != std::string::npos);
  request = {};
  request.prompt_tokens = {5, 264};
  CHECK(error_of(request).message.find("prompt token 264") != std::string::npos);
  CHECK(house.slots->count() == 0);
}

TEST_CASE("the answer is cut at the context's end, and a prompt alone may fill it") {
  company_fixture house; // a context of 256
  auto sink = house.ask(std::string(250, 'x'), 100);
  house.run();
  CHECK(sink->text().size() == 6);
  CHECK(sink->finished()->reason == finish_reason::length);
  sink = house.ask(std::string(256, 'x'), 0);
  house.run();
  CHECK(sink->finished()->reason == finish_reason::length);
  CHECK(sink->finished()->usage.completion_tokens == 0);
  CHECK(sink->all<generation_started>().size() == 1);
}

TEST_CASE("a prompt that was read before is found in the prefix cache, under the same tenant only") {
  company_fixture house;
  const std::string prompt(100, 'p');
  auto sink = house.ask(prompt, 4);
  house.run();
  CHECK(sink->finished()->usage.cached_tokens == 0);
  const auto answer = sink->text();
  sink = house.ask(prompt, 4);
  house.run();
  CHECK(sink->finished()->usage.cached_tokens == 100); // all of it: the state at its end was kept
  CHECK(house.device->resumed == 1);
  CHECK(sink->text() == answer);
  CHECK(sink->all<generation_started>().front().cached_tokens == 100);
  generation_request other;
  other.prompt = prompt;
  other.max_tokens = 4;
  other.tenant = "another";
  sink = house.ask(other);
  house.run();
  CHECK(sink->finished()->usage.cached_tokens == 0);
  CHECK(house.all_pages_back());
}

TEST_CASE("cancelled in whatever state, a request ends once and its pages are back") {
  int cancelled = 0;
  for (int at = 0; at < 90; ++at) {
    CAPTURE(at);
    company_fixture house;
    const auto other = house.ask("the other one", 8);
    const auto sink = house.ask("to be cancelled", 12);
    for (int i = 0; i < at; ++i)
      house.step();
    house.port->cancel(house.last_request);
    house.port->cancel(house.last_request);
    house.run();
    CHECK(sink->ends() == 1);
    CHECK(sink->after_end() == 0);
    CHECK(other->text().size() == 8);
    CHECK(house.all_pages_back());
    CHECK(house.slots->count() == 0);
    REQUIRE(sink->finished());
    cancelled += sink->finished()->reason == finish_reason::cancelled ? 1 : 0;
  }
  CHECK(cancelled > 60);
}

TEST_CASE("after a cancel no further step computes that sequence but the one that runs") {
  company_fixture house;
  const auto sink = house.ask("endless", 100);
  while (house.device->steps < 5)
    house.step();
  house.port->cancel(house.last_request);
  house.run();
  CHECK(house.device->steps <= 7);
  CHECK(house.pages_used() == 0);
  CHECK(sink->finished()->reason == finish_reason::cancelled);
}

TEST_CASE("a stop string ends the request and frees its sequence") {
  company_options options;
  options.device->choose = writes(bytes("first line\nsecond"), 5, added::im_end);
  company_fixture house(options);
  generation_request request;
  request.prompt = "12345";
  request.stop = {"line\nsec"};
  const auto sink = house.ask(request);
  house.run();
  CHECK(sink->text() == "first ");
  CHECK(sink->finished()->reason == finish_reason::stop);
  CHECK(sink->finished()->usage.completion_tokens == 14);
  CHECK(house.device->steps < 18);
  CHECK(house.all_pages_back());
}

TEST_CASE("an end token ends the answer, is counted, and is no text") {
  company_options options;
  options.device->choose = writes(bytes("done"), 5, added::im_end);
  company_fixture house(options);
  auto sink = house.ask("12345", 50);
  house.run();
  CHECK(sink->text() == "done");
  CHECK(sink->finished()->reason == finish_reason::stop);
  CHECK(sink->finished()->usage.completion_tokens == 5);
  generation_request request;
  request.prompt = "12345";
  request.max_tokens = 10;
  request.ignore_eos = true;
  sink = house.ask(request);
  house.run();
  CHECK(sink->finished()->reason == finish_reason::length);
  CHECK(sink->finished()->usage.completion_tokens == 10);
}

TEST_CASE("a chat's reasoning, text and tool calls come apart") {
  std::vector<token_id> answer{added::think_open};
  const auto add = [&answer](const std::vector<token_id>& more) { answer.insert(answer.end(), more.begin(), more.end()); };
  add(bytes("\nA call.\n"));
  answer.push_back(added::think_close);
  add(bytes("\n\nOne moment."));
  answer.push_back(added::tool_open);
  add(bytes("\n{\"name\": \"look\", \"arguments\": {\"n\": 1}}\n"));
  answer.push_back(added::tool_close);
  company_options options;
  options.context_tokens = 1024;
  options.device->pages = 256;
  options.device->choose = answers(answer);
  company_fixture house(options);
  auto request = chat("look it up");
  request.tools = {"{\"type\":\"function\",\"function\":{\"name\":\"look\"}}"};
  const auto sink = house.ask(request);
  house.run();
  REQUIRE(sink->finished());
  CHECK(sink->reasoning() == "A call.");
  CHECK(sink->text() == "One moment.");
  REQUIRE(sink->calls().size() == 1);
  CHECK(sink->calls()[0].name == "look");
  CHECK(sink->calls()[0].arguments == "{\"n\": 1}");
  CHECK(sink->finished()->reason == finish_reason::tool_calls);
  CHECK(sink->finished()->usage.reasoning_tokens == 11);
}

TEST_CASE("a step that fails or throws is run again and costs no token; a bad sequence ends alone") {
  company_fixture calm;
  const auto want = calm.ask("steady as she goes", 10);
  calm.run();

  company_fixture house;
  house.device->fail_steps = 1;
  auto sink = house.ask("steady as she goes", 10);
  house.run();
  CHECK(sink->text() == want->text());
  house.device->throw_steps = 1;
  sink = house.ask("steady as she goes", 10);
  house.run();
  CHECK(sink->text() == want->text());
  CHECK(house.context->metrics->steps_failed == 2);

  const auto good = house.ask("good", 10);
  const auto bad = house.ask("bad", 10);
  house.device->faulty = house.last_request;
  house.run();
  CHECK(good->text().size() == 10);
  REQUIRE(bad->failed());
  CHECK(bad->failed()->fault.code == errc::device_failed);
  CHECK(house.all_pages_back());
}

TEST_CASE("a backend that fails for good ends its requests with device_failed") {
  company_fixture house;
  house.device->fail_steps = 1000;
  const auto sink = house.ask("hopeless", 10);
  house.run();
  REQUIRE(sink->failed());
  CHECK(sink->failed()->fault.code == errc::device_failed);
  CHECK(house.all_pages_back());
}

TEST_CASE("metrics tell what happened, and a scrape asks nobody") {
  company_fixture house;
  const auto sink = house.ask("count me", 5);
  house.run();
  const auto text = house.port->metrics_text();
  for (const auto* line :
       {"troupe_requests_total{outcome=\"length\"} 1\n", "troupe_generated_tokens_total 5\n", "troupe_prompt_tokens_total 8\n",
        "troupe_steps_total 5\n", "troupe_sequences_running 0\n", "troupe_requests_in_flight 0\n",
        "troupe_time_to_first_token_seconds_count 1\n", "troupe_inter_token_seconds_count 4\n",
        "troupe_queue_wait_seconds_count 1\n", "troupe_request_seconds_count 1\n", "troupe_kv_pages{state=\"used\"} 0\n"})
    CHECK_MESSAGE(text.find(line) != std::string::npos, line);
}

TEST_CASE("a chat is rendered on from what the worker knows; its successor starts anew and gives the same tokens") {
  company_options options;
  options.workers = 1;
  options.context_tokens = 1024;
  company_fixture house(options);
  auto request = chat(std::string(200, 'q'));
  request.max_tokens = 4;
  const auto turn = [&] {
    const auto sink = house.ask(request);
    house.run();
    CHECK(sink->finished());
    return sink->text();
  };
  request.messages.push_back({"assistant", turn(), "", {}, ""});
  request.messages.push_back({"user", "and now?", "", {}, ""});
  const auto answer = turn();
  const auto& metrics = *house.context->metrics;
  CHECK(metrics.history_misses == 1);
  CHECK(metrics.history_hits == 1);
  CHECK(metrics.history_tokens > 200);
  CHECK(metrics.history_conversations == 1);
  house.kill(actor_kind::worker);
  house.run_until([&] { return house.front->peers()->workers[0].alive(); });
  CHECK(metrics.history_bytes == 0);
  CHECK(turn() == answer);
  CHECK(metrics.history_misses == 2);
  CHECK(turn() == answer);
  CHECK(metrics.history_hits == 2);
  CHECK(metrics.history_conversations == 1);
}

TEST_CASE("draining refuses new requests and ends the open ones once") {
  company_fixture house;
  const auto sink = house.ask("never finished", 200);
  while (house.device->steps < 3)
    house.step();
  house.front->set_health(health_state::draining, "the service is shutting down");
  auto late = std::make_shared<collecting_sink>();
  generation_request request;
  request.prompt = "late";
  CHECK(house.submit(request, late).fault().code == errc::shutting_down);
  house.stop();
  CHECK(sink->ends() == 1);
  CHECK(sink->failed()->fault.code == errc::shutting_down);
  CHECK(sink->failed()->usage.completion_tokens >= 1);
  CHECK(late->events().empty());
}
