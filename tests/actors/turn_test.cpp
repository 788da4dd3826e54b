// The parts of a turn that know no actor: ticket, sampling, prompt, restart policy, metrics, session logic.
#include <doctest/doctest.h>

#include <limits>
#include <thread>

#include "actors/compute_stream/backend_slot.hpp"
#include "actors/metrics/metrics_registry.hpp"
#include "actors/session/sampling_choice.hpp"
#include "actors/session/session_logic.hpp"
#include "actors/supervisor/company_front.hpp"
#include "actors/supervisor/restart_policy.hpp"
#include "actors/worker/prompt_preparer.hpp"
#include "base/check.hpp"
#include "config/limits.hpp"
#include "tests/support/byte_tokenizer.hpp"
#include "tests/support/collecting_sink.hpp"
#include "tests/support/fake_backend.hpp"

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

struct bench {
  std::shared_ptr<in_flight> slots = std::make_shared<in_flight>(2);
  std::shared_ptr<metrics_registry> metrics = std::make_shared<metrics_registry>();
  std::shared_ptr<company_front> front = std::make_shared<company_front>();
  std::shared_ptr<collecting_sink> sink = std::make_shared<collecting_sink>();

  ticket_ptr ticket(std::uint64_t number = 1) {
    CHECK(slots->try_enter());
    auto out = std::make_shared<request_ticket>(ticket_parts{number, sink, slots, metrics, front, real_clock()});
    front->add(out);
    return out;
  }

  context_ptr context() const {
    auto out = std::make_shared<runtime_context>();
    out->tokens = byte_tokenizer();
    out->context_tokens = 64;
    out->end_tokens = {added::im_end};
    out->marks = find_answer_tokens(*out->tokens);
    out->draw = [] { return 99u; };
    out->clock = real_clock();
    out->metrics = metrics;
    return out;
  }

  session_logic turn(generation_request request) {
    return session_logic({context(), ticket(), std::make_shared<const generation_request>(std::move(request))});
  }
};

prepared_prompt prompt_of(std::vector<token_id> tokens) {
  prepared_prompt out;
  out.tokens = std::move(tokens);
  return out;
}

tokens_generated token_at(request_id id, int position, token_id token) {
  sampled_token sampled;
  sampled.token = token;
  return {id, position, {sampled}, false, {}};
}

} // namespace

TEST_CASE("a ticket ends once, whatever else is tried") {
  bench b;
  auto ticket = b.ticket();
  ticket->push(generation_started{3, 0});
  ticket->count({3, 0, 7, 0});
  CHECK(ticket->finish(finish_reason::stop));
  CHECK_FALSE(ticket->fail({errc::internal, "late"}));
  ticket->push(text_delta{"late", {}});
  ticket.reset();
  CHECK(b.sink->events().size() == 2);
  CHECK(b.sink->finished()->usage.completion_tokens == 7);
  CHECK(b.slots->count() == 0);
  CHECK(b.metrics->requests("stop") == 1);
}

TEST_CASE("a ticket that is dropped fails with unavailable and is forgotten") {
  bench b;
  auto ticket = b.ticket(5);
  CHECK(b.front->find(5) == ticket);
  ticket.reset();
  REQUIRE(b.sink->failed());
  CHECK(b.sink->failed()->fault.code == errc::unavailable);
  CHECK(b.front->find(5) == nullptr);
  CHECK(b.front->open().empty());
  CHECK(b.slots->count() == 0);
  CHECK(b.metrics->requests("unavailable") == 1);
}

TEST_CASE("threads that race for the end give one end") {
  for (int round = 0; round < 50; ++round) {
    bench b;
    auto ticket = b.ticket();
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&ticket, i] {
        ticket->push(text_delta{"x", {}});
        i % 2 ? ticket->finish(finish_reason::stop) : ticket->fail({errc::timeout, "too late"});
      });
    for (auto& t : threads)
      t.join();
    CHECK(b.sink->ends() == 1);
    CHECK(b.sink->after_end() == 0);
    CHECK(b.slots->count() == 0);
  }
}

TEST_CASE("in_flight admits up to its limit and tells when none is left") {
  in_flight slots(2);
  CHECK(slots.try_enter());
  CHECK(slots.try_enter());
  CHECK_FALSE(slots.try_enter());
  CHECK_FALSE(slots.wait_none(std::chrono::steady_clock::now() + 1ms));
  std::thread leaver([&slots] {
    slots.leave();
    slots.leave();
  });
  CHECK(slots.wait_none(std::chrono::steady_clock::now() + 30s));
  leaver.join();
  CHECK(slots.try_enter());
}

TEST_CASE("a request's sampling overrides the model's defaults field by field") {
  sampling_params defaults;
  defaults.temperature = 0.6f;
  defaults.top_k = 20;
  defaults.top_p = 0.95f;
  sampling_request request;
  request.temperature = 0.0f;
  auto got = choose_sampling(request, defaults, 100, 77).value();
  CHECK(got.temperature == 0.0f);
  CHECK(got.top_k == 20);
  CHECK(got.top_p == 0.95f);
  CHECK(got.seed == 77);
  request.seed = 5;
  request.top_k = -1;
  request.top_p = 0.0f;
  request.logprobs = true;
  request.top_logprobs = 20;
  got = choose_sampling(request, defaults, 100, 77).value();
  CHECK(got.seed == 5);
  CHECK(got.top_k == 1); // top_p 0: only the best
  CHECK(got.top_p == 1.0f);
  CHECK(got.top_logprobs == 20);
}

TEST_CASE("sampling outside its ranges names the field") {
  const auto message = [](auto change) {
    sampling_request request;
    change(request);
    const auto got = choose_sampling(request, {}, 100, 0);
    REQUIRE_FALSE(got);
    return got.fault().message;
  };
  const auto starts = [](const std::string& text, std::string_view with) { return text.substr(0, with.size()) == with; };
  CHECK(starts(message([](auto& r) { r.temperature = -0.1f; }), "temperature is -0.1; it must lie within 0 and 2"));
  CHECK(starts(message([](auto& r) { r.temperature = std::numeric_limits<float>::quiet_NaN(); }), "temperature"));
  CHECK(starts(message([](auto& r) { r.top_p = 1.5f; }), "top_p"));
  CHECK(starts(message([](auto& r) { r.min_p = -1.0f; }), "min_p"));
  CHECK(starts(message([](auto& r) { r.repetition_penalty = 0.0f; }), "repetition_penalty"));
  CHECK(starts(message([](auto& r) { r.presence_penalty = 2.5f; }), "presence_penalty"));
  CHECK(starts(message([](auto& r) { r.frequency_penalty = -2.5f; }), "frequency_penalty"));
  CHECK(starts(message([](auto& r) { r.top_k = -2; }), "top_k"));
  CHECK(starts(message([](auto& r) { r.top_logprobs = limits::top_logprobs_max + 1; }), "top_logprobs"));
  CHECK(starts(message([](auto& r) { r.logit_bias = {{100, 1.0f}}; }), "logit_bias"));
  CHECK(starts(message([](auto& r) { r.logit_bias.resize(limits::logit_bias_max + 1); }), "logit_bias"));
}

TEST_CASE("a request beyond a bound is refused by its name") {
  generation_request request;
  request.messages.resize(limits::messages_max + 1);
  CHECK(check_request(request).fault().code == errc::too_large);
  request.messages.resize(1);
  CHECK(check_request(request));
  request.tools.resize(limits::tools_max + 1);
  CHECK(check_request(request).fault().message.find("tools") != std::string::npos);
  request.tools.clear();
  request.stop.resize(limits::stop_strings_max + 1);
  CHECK(check_request(request).fault().code == errc::too_large);
  request.stop = {std::string(limits::stop_string_bytes_max + 1, 'x')};
  CHECK(check_request(request).fault().code == errc::too_large);
  request.stop.clear();
  request.max_tokens = -1;
  CHECK(check_request(request).fault().code == errc::invalid_argument);
  request.max_tokens.reset();
  request.priority = limits::priority_max + 1;
  CHECK(check_request(request).fault().code == errc::invalid_argument);
}

TEST_CASE("the first restart comes at once, later ones after doubling delays, too many escalate") {
  restart_policy policy;
  const steady_time start{100s};
  CHECK(policy.died(actor_kind::batcher, 0, start).delay == 0ms);
  CHECK(policy.died(actor_kind::batcher, 0, start).delay == 20ms);
  CHECK(policy.died(actor_kind::batcher, 0, start).delay == 40ms);
  CHECK(policy.died(actor_kind::kv_shard, 0, start).delay == 0ms); // each member for itself
  for (int i = 4; i <= limits::restarts_max; ++i) {
    const auto d = policy.died(actor_kind::batcher, 0, start);
    CHECK_FALSE(d.escalate);
    CHECK(d.delay <= limits::restart_delay_max);
  }
  CHECK(policy.failing().empty());
  CHECK(policy.died(actor_kind::batcher, 0, start).escalate);
  CHECK(policy.failing() == "batcher 0 died 11 times within 60 s");
  CHECK(policy.died(actor_kind::kv_shard, 1, start + 100s).escalate); // nothing is restarted any more
}

TEST_CASE("deaths outside the window are forgotten") {
  restart_policy policy;
  steady_time now{100s};
  for (int i = 0; i < 5 * limits::restarts_max; ++i, now += limits::restart_window + 1s)
    CHECK(policy.died(actor_kind::worker, 0, now).delay == 0ms);
}

TEST_CASE("histograms count into cumulative buckets") {
  seconds_histogram h;
  h.observe(1ms);
  h.observe(3ms);
  h.observe(500s);
  std::string text;
  h.render(text, "x");
  CHECK(text.find("x_bucket{le=\"0.001\"} 1\n") != std::string::npos);
  CHECK(text.find("x_bucket{le=\"0.005\"} 2\n") != std::string::npos);
  CHECK(text.find("x_bucket{le=\"120\"} 2\n") != std::string::npos);
  CHECK(text.find("x_bucket{le=\"+Inf\"} 3\n") != std::string::npos);
  CHECK(text.find("x_sum 500.004\n") != std::string::npos);
  CHECK(text.find("x_count 3\n") != std::string::npos);
}

TEST_CASE("every series has a help text and a type before its samples") {
  const auto text = metrics_registry().render(3);
  std::string last_typed;
  std::size_t samples = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = text.find('\n', at);
    const auto line = text.substr(at, end - at);
    at = end + 1;
    if (line.starts_with("# TYPE ")) {
      last_typed = line.substr(7, line.find(' ', 7) - 7);
    } else if (!line.starts_with("#")) {
      CHECK_MESSAGE(line.starts_with(last_typed), line);
      CHECK(line.starts_with("troupe_"));
      ++samples;
    }
  }
  CHECK(samples > 90);
  CHECK(text.find("troupe_requests_in_flight 3\n") != std::string::npos);
}

TEST_CASE("a turn that is submitted again goes on with the next token") {
  bench b;
  generation_request request;
  request.prompt = "abc";
  request.max_tokens = 10;
  auto turn = b.turn(request);
  auto first = turn.prepared(prompt_of({'a', 'b', 'c'}));
  REQUIRE(first);
  CHECK(first->id == request_id{1, 0});
  CHECK(*first->tokens == std::vector<token_id>{'a', 'b', 'c'});
  CHECK(first->max_new_tokens == 10);
  CHECK(first->sampling->seed == 99);
  turn.generated(token_at(first->id, 3, 'x'));
  turn.generated(token_at(first->id, 4, 'y'));

  auto again = turn.resubmission();
  REQUIRE(again);
  CHECK(again->id == request_id{1, 1});
  CHECK(*again->tokens == std::vector<token_id>{'a', 'b', 'c', 'x', 'y'});
  CHECK(again->prompt_length == 3);
  CHECK(again->max_new_tokens == 10);
  CHECK(again->sampling->seed == 99);
  turn.generated(token_at(first->id, 5, 'L')); // late, of the former run
  turn.finished({first->id, sequence_end::length, -1, {}});
  CHECK_FALSE(turn.ended());
  turn.generated(token_at(again->id, 5, 'z'));
  turn.finished({again->id, sequence_end::end_token, added::im_end, {}});
  CHECK(turn.ended());
  CHECK(b.sink->text() == "xyz");
  CHECK(b.sink->finished()->usage.completion_tokens == 4);
  CHECK(b.metrics->resubmissions == 1);
  CHECK_FALSE(turn.resubmission());
}

TEST_CASE("a turn that would be started again without end fails with unavailable") {
  bench b;
  generation_request request;
  request.prompt = "abc";
  auto turn = b.turn(request);
  CHECK(turn.prepared(prompt_of({'a', 'b', 'c'})));
  for (int i = 0; i < limits::resubmissions_max; ++i)
    CHECK(turn.resubmission());
  CHECK_FALSE(turn.resubmission());
  REQUIRE(b.sink->failed());
  CHECK(b.sink->failed()->fault.code == errc::unavailable);
}

TEST_CASE("a token out of order is a defect") {
  bench b;
  generation_request request;
  request.prompt = "abc";
  auto turn = b.turn(request);
  const auto run = turn.prepared(prompt_of({'a', 'b', 'c'}));
  CHECK_THROWS_AS(turn.generated(token_at(run->id, 4, 'x')), check_failed);
}

TEST_CASE("a cancelled turn ends at once and names the run to drop, once") {
  bench b;
  generation_request request;
  request.prompt = "abc";
  auto turn = b.turn(request);
  const auto run = turn.prepared(prompt_of({'a', 'b', 'c'}));
  turn.cancel();
  turn.cancel();
  CHECK(turn.take_abandoned() == run->id);
  CHECK_FALSE(turn.take_abandoned());
  CHECK(b.sink->finished()->reason == finish_reason::cancelled);
  CHECK(b.sink->ends() == 1);
  CHECK_FALSE(turn.prepared(prompt_of({'a'})));
}

TEST_CASE("the backend's slot classifies what goes wrong and lets nothing out") {
  auto device = std::make_shared<fake_device>();
  backend_slot slot(std::make_unique<fake_backend>(device), real_clock());
  step_plan plan;
  plan.number = 7;
  CHECK(slot.run(plan).value().number == 7);
  device->throw_steps = 1;
  CHECK(slot.run(plan).fault().code == errc::device_failed);
  device->fail_steps = 1;
  CHECK(slot.run(plan).fault().code == errc::device_failed);
  device->before_step = [](const step_plan&) { throw std::bad_alloc(); };
  CHECK(slot.run(plan).fault().code == errc::no_memory);
  device->before_step = [](const step_plan&) { TROUPE_CHECK(1 + 1 == 3); };
  CHECK(slot.run(plan).fault().code == errc::internal);
  device->before_step = [&slot](const step_plan& p) {
    CHECK(slot.running_for());
    static_cast<void>(slot.run(p)); // a second thread inside is a defect
  };
  CHECK(slot.run(plan).fault().code == errc::internal);
  CHECK_FALSE(slot.running_for());
}
