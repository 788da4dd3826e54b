// Stored responses with records behind them: what is acknowledged when, what comes back, what a fault costs.
#include <doctest/doctest.h>

#include "base/random.hpp"
#include "io/edge_core.hpp"
#include "io/http/router.hpp"
#include "io/response_records.hpp"
#include "io/responses_socket.hpp"
#include "tests/support/hand_port.hpp"
#include "tests/support/json_text.hpp"
#include "tests/support/memory_records.hpp"
#include "tests/support/test_seeds.hpp"

using namespace troupe;
using troupe::testing::hand_port;
using troupe::testing::json_at;
using troupe::testing::memory_records;

namespace {

constexpr response_bounds roomy{100, 1 << 20};

std::shared_ptr<const chat_message> message(std::string text, std::string role = "user") {
  return std::make_shared<const chat_message>(chat_message{std::move(role), std::move(text), {}, {}, {}});
}

std::vector<std::string> texts_of(const std::optional<shared_conversation>& conversation) {
  std::vector<std::string> out;
  if (conversation)
    for (const auto& each : *conversation)
      out.push_back(each->content);
  return out;
}

struct kept_edge {
  explicit kept_edge(std::shared_ptr<memory_records> store) : records(std::move(store)) {
    edge_options options;
    options.records = records;
    core.emplace(std::move(options), true, port, log_sink{});
    routes.emplace(*core);
  }
  route_reply reply(std::string method, std::string target, std::string body = {}) {
    return routes->handle({std::move(method), std::move(target), {{"host", "localhost"}}, std::move(body), 11, true});
  }
  // The bytes of a response's HTTP answer as far as they are there; `answer` stays open where it is held back.
  std::string create(const std::string& body, std::optional<http_answer>& answer, written_fn keeper = nullptr) {
    auto made = reply("POST", "/v1/responses", body);
    auto& job = std::get<generation_job>(made);
    job.encoder->keep_with(std::move(keeper));
    answer.emplace(std::move(job.encoder), http_framing{});
    std::string out;
    answer->consume(generation_started{}, out);
    answer->consume(text_delta{"Hello", {}}, out);
    answer->consume(generation_finished{}, out);
    return out;
  }

  std::shared_ptr<memory_records> records;
  hand_port port;
  std::optional<edge_core> core;
  std::optional<router> routes;
};

std::string body_of(const std::string& answer) {
  return answer.substr(answer.find("\r\n\r\n") + 4);
}

} // namespace

TEST_CASE("every field of a message and a response comes back from its record") {
  auto records = std::make_shared<memory_records>();
  chat_message full{"assistant", "text \xf0\x9f\x98\x80", "thought", {{"c1", "f", "{\"a\":1}"}, {"c2", "g", "{}"}}, "tool-id"};
  {
    response_store store(roomy, records);
    store.put({"r", "tenant", {message("hello"), std::make_shared<const chat_message>(full)}, R"({"id":"r"})"});
  }
  response_store store(roomy, records);
  store.restore({});
  CHECK(store.json("r", "tenant") == R"({"id":"r"})");
  CHECK(!store.json("r", ""));
  const auto back = store.conversation("r", "tenant");
  REQUIRE(back);
  REQUIRE(back->size() == 2);
  const chat_message& read = *back->at(1);
  CHECK(read.role == full.role);
  CHECK(read.content == full.content);
  CHECK(read.reasoning == full.reasoning);
  CHECK(read.tool_call_id == full.tool_call_id);
  REQUIRE(read.tool_calls.size() == 2);
  CHECK(read.tool_calls[0].arguments == "{\"a\":1}");
  CHECK(read.tool_calls[1].name == "g");
}

TEST_CASE("a conversation's messages are recorded once, and go with the last response that holds them") {
  auto records = std::make_shared<memory_records>();
  response_store store(roomy, records);
  const auto first = message("one");
  store.put({"a", {}, {first}, "{}"});
  store.put({"b", {}, {first, message("two")}, "{}"});
  CHECK(records->tables["messages"].size() == 2);
  CHECK(records->tables["responses"].size() == 2);
  store.erase("a", {});
  CHECK(records->tables["messages"].size() == 2);
  store.erase("b", {});
  CHECK(records->size() == 0);
}

TEST_CASE("what the bounds drop is erased from the records, also when they are tighter than before") {
  auto records = std::make_shared<memory_records>();
  {
    response_store store({3, 1 << 20}, records);
    for (int i = 0; i < 8; ++i)
      store.put({"r" + std::to_string(i), {}, {message(std::to_string(i))}, "{}"});
    CHECK(records->tables["responses"].size() == 3);
    CHECK(records->tables["messages"].size() == 3);
  }
  response_store store({2, 1 << 20}, records);
  store.restore({});
  CHECK(store.size() == 2);
  CHECK(texts_of(store.conversation("r7", {})) == std::vector<std::string>{"7"});
  CHECK(!store.json("r5", {}));
  CHECK(records->size() == 4);
}

TEST_CASE("a response is seen and its keeper told when its record is there, not before") {
  auto records = std::make_shared<memory_records>();
  records->held = true;
  response_store store(roomy, records);
  int told = 0;
  CHECK(store.put({"a", {}, {message("x")}, "{}"}, [&](const result<void>& r) { told += r ? 1 : 100; }) ==
        store_answer::under_way);
  CHECK(told == 0);
  CHECK(!store.json("a", {}));
  CHECK(store.erase("a", {}) == store_answer::unknown);
  records->work();
  CHECK(told == 1);
  CHECK(store.json("a", {}));
}

TEST_CASE("a response whose record was refused is not kept, and leaves no message behind") {
  auto records = std::make_shared<memory_records>();
  response_store store(roomy, records);
  store.put({"a", {}, {message("one")}, "{}"});
  const auto before = store.bytes();
  records->refusal = error{errc::io_failed, "the disk is full"};
  std::string why;
  auto longer = *store.conversation("a", {});
  longer.push_back(message("two"));
  store.put({"b", {}, longer, "{}"}, [&](const result<void>& r) { why = r ? "" : r.fault().message; });
  CHECK(why == "the disk is full");
  CHECK(!store.json("b", {}));
  CHECK(store.bytes() == before);
  CHECK(store.failures() >= 1);
  records->refusal.reset();
  store.put({"c", {}, longer, "{}"});
  response_store again(roomy, records);
  again.restore({});
  CHECK(texts_of(again.conversation("c", {})) == std::vector<std::string>{"one", "two"});
  CHECK(again.size() == 2);
}

TEST_CASE("of two responses that share a message not yet recorded either may fail alone") {
  for (const bool first_fails : {true, false}) {
    CAPTURE(first_fails);
    auto records = std::make_shared<memory_records>();
    records->held = true;
    const auto shared = message("shared");
    {
      response_store store(roomy, records);
      store.put({"a", {}, {shared}, "{}"}, [&](const result<void>&) { // the refusal holds for one of them
        records->refusal = first_fails ? std::nullopt : std::optional(error{errc::io_failed, "full"});
      });
      store.put({"b", {}, {shared}, "{}"});
      if (first_fails)
        records->refusal = error{errc::io_failed, "full"};
      records->work();
      records->refusal.reset();
      records->work();
    }
    response_store store(roomy, records);
    store.restore({});
    CHECK(store.size() == 1);
    CHECK(texts_of(store.conversation(first_fails ? "b" : "a", {})) == std::vector<std::string>{"shared"});
  }
}

TEST_CASE("a damaged or missing record costs the responses that need it and no other") {
  auto records = std::make_shared<memory_records>();
  const auto shared = message("shared");
  {
    response_store store(roomy, records);
    store.put({"a", {}, {shared}, "{}"});
    store.put({"b", {}, {shared, message("b's")}, "{}"});
    store.put({"c", {}, {message("c's")}, "{}"});
    store.put({"d", {}, {message("d's")}, "{}"});
  }
  auto& messages = records->tables["messages"];
  for (auto it = messages.begin(); it != messages.end();)
    it = it->second.find("b's") != std::string::npos ? messages.erase(it) : std::next(it);
  for (auto& [key, value] : records->tables["responses"])
    if (value.find('c') != std::string::npos)
      value.resize(value.size() - 1);
  records->tables["messages"]["odd key"] = "odd value";
  std::vector<std::string> log;
  response_store store(roomy, records);
  store.restore([&](log_level, std::string_view line) { log.emplace_back(line); });
  CHECK(store.json("a", {}));
  CHECK(!store.json("b", {}));
  CHECK(!store.json("c", {}));
  CHECK(store.json("d", {}));
  REQUIRE(!log.empty());
  CHECK(log[0].find("2 stored responses are damaged") != std::string::npos);
  CHECK(records->tables["responses"].size() == 2);
  store.put({"e", {}, {message("new")}, "{}"});
  response_store again(roomy, records);
  again.restore({});
  CHECK(again.size() == 3);
  CHECK(texts_of(again.conversation("a", {})) == std::vector<std::string>{"shared"});
}

TEST_CASE("any bytes are read as a record or refused") {
  for (const auto seed : testing::test_seeds(300)) {
    auto records = std::make_shared<memory_records>();
    std::uint64_t drawn = 0;
    const auto draw = [&](std::uint64_t below) { return random_at(seed, drawn++) % below; };
    {
      response_store store(roomy, records);
      chat_message call{"assistant", "x", "y", {{"i", "n", "{}"}}, {}};
      for (const char* id : {"a", "b"})
        store.put({id, "t", {message("hello"), std::make_shared<const chat_message>(call)}, "{}"});
    }
    for (auto& [name, table] : records->tables)
      for (auto& [key, value] : table)
        for (std::uint64_t n = draw(3); n > 0 && !value.empty(); --n)
          if (draw(2) == 0)
            value[draw(value.size())] = static_cast<char>(draw(256));
          else
            value.resize(draw(value.size() + 20), static_cast<char>(draw(256)));
    response_store store(roomy, records);
    store.restore({});
    CHECK(store.size() <= 2);
    store.put({"new", {}, {message("x")}, "{}"});
    CHECK(store.json("new", {}));
  }
}

TEST_CASE("an HTTP answer is held back until its response is kept") {
  kept_edge edge(std::make_shared<memory_records>());
  edge.records->held = true;
  for (const char* stream : {"false", "true"}) {
    CAPTURE(stream);
    const bool streams = std::string_view(stream) == "true";
    std::optional<http_answer> answer;
    std::optional<result<void>> outcome;
    std::string out = edge.create(R"({"input":"x","stream":)" + std::string(stream) + "}", answer,
                                  [&](result<void> r) { outcome = std::move(r); });
    CHECK(out.empty() != streams);
    CHECK(out.find("response.completed") == std::string::npos);
    CHECK(!answer->ended());
    edge.records->work();
    REQUIRE(outcome);
    answer->consume(keeping_ended{*outcome}, out);
    CHECK(answer->ended());
    CHECK(out.find(streams ? "event: response.completed" : "\"status\":\"completed\"") != std::string::npos);
  }
  CHECK(edge.core->responses.size() == 2);
}

TEST_CASE("an HTTP answer whose response the disk refuses fails, and the next one works") {
  kept_edge edge(std::make_shared<memory_records>());
  edge.records->refusal = error{errc::io_failed, "the disk is full"};
  for (const bool streams : {false, true}) {
    CAPTURE(streams);
    std::optional<http_answer> answer;
    std::optional<result<void>> outcome;
    std::string out = edge.create(std::string(R"({"input":"x","stream":)") + (streams ? "true}" : "false}"), answer,
                                  [&](result<void> r) { outcome = std::move(r); });
    REQUIRE(outcome);
    answer->consume(keeping_ended{*outcome}, out);
    CHECK(answer->ended());
    CHECK(out.find("completed\",\"sequence") == std::string::npos);
    if (streams) {
      const auto end = out.substr(out.find("event: response.failed"));
      const auto json = end.substr(end.find("data: ") + 6, end.find("\n\n") - end.find("data: ") - 6);
      CHECK(json_at(json, "/response/status") == "failed");
      CHECK(json_at(json, "/response/error/message") == "the disk is full");
      CHECK(json_at(json, "/sequence_number") == "8"); // no gap where the other end was
    } else {
      CHECK(out.find("HTTP/1.1 500") == 0);
      CHECK(json_at(body_of(out), "/error/code") == "io_failed");
    }
  }
  edge.records->refusal.reset();
  std::optional<http_answer> answer;
  std::string out = edge.create(R"({"input":"x","store":false})", answer);
  CHECK(answer->ended());
  CHECK(edge.core->responses.size() == 0);
}

TEST_CASE("a deletion is answered when the record is erased") {
  kept_edge edge(std::make_shared<memory_records>());
  edge.core->responses.put({"r", {}, {message("x")}, "{}"});
  edge.records->held = true;
  auto reply = edge.reply("DELETE", "/v1/responses/r");
  const auto& job = std::get<erase_job>(reply);
  std::optional<result<void>> outcome;
  CHECK(!edge.routes->erase(job, [&](result<void> r) { outcome = std::move(r); }));
  CHECK(edge.records->size() == 2);
  edge.records->work();
  REQUIRE(outcome);
  CHECK(json_at(edge.routes->erased(job, *outcome).body, "/deleted") == "true");
  CHECK(edge.records->size() == 0);
  CHECK(edge.routes->erase(job, nullptr)->status == 404);
  CHECK(edge.routes->erased(job, fail(errc::io_failed, "no")).status == 500);
}

TEST_CASE("an erasure that the disk refused is made up for by the next write, and does not come back") {
  auto records = std::make_shared<memory_records>();
  {
    response_store store(roomy, records);
    store.put({"r", {}, {message("x")}, "{}"});
    records->refusal = fail(errc::io_failed, "the disk is full");
    result<void> outcome;
    store.erase("r", {}, [&](result<void> r) { outcome = std::move(r); });
    CHECK_FALSE(outcome);
    CHECK(records->size() == 2);
    records->refusal.reset();
    store.put({"later", {}, {}, "{}"});
  }
  response_store again(roomy, records);
  again.restore(log_sink{});
  CHECK_FALSE(again.json("r", {}));
  CHECK(again.json("later", {}));
  CHECK(records->size() == 1);
}

TEST_CASE("a socket tells of a response's end when it is kept, and its lane goes on then") {
  kept_edge edge(std::make_shared<memory_records>());
  edge.records->held = true;
  auto inbox = std::make_shared<event_inbox>(1 << 20, edge.core->answers, [] {});
  auto session = make_responses_socket(*edge.core, inbox, {});
  const auto events = [&] {
    std::vector<run_event> waiting;
    inbox->take(waiting);
    socket_output out;
    for (run_event& e : waiting)
      session->on_event(e, out);
    std::vector<std::string> types;
    for (const auto& frame : out.frames)
      types.push_back(json_at(frame.payload, "/type"));
    return types;
  };
  socket_output ignored;
  for (int i = 0; i < 2; ++i)
    session->on_message(R"({"type":"response.create","input":"x"})", false, ignored);
  const auto finish = [&](std::size_t request) {
    edge.port.sinks[request]->push(generation_started{});
    edge.port.sinks[request]->push(generation_finished{});
  };
  finish(0);
  CHECK(events() == std::vector<std::string>{"response.created", "response.in_progress"});
  CHECK(edge.port.requests.size() == 1);
  edge.records->work();
  CHECK(events() == std::vector<std::string>{"response.completed"});
  REQUIRE(edge.port.requests.size() == 2);
  edge.records->refusal = error{errc::io_failed, "full"};
  finish(1);
  events();
  edge.records->work();
  CHECK(events() == std::vector<std::string>{"response.failed"});
  CHECK(edge.core->responses.size() == 1);
}
