// The small parts: JSON writing, statuses, the inbox, the stored responses, access.
#include <doctest/doctest.h>

#include "config/limits.hpp"
#include "io/event_inbox.hpp"
#include "io/http/access.hpp"
#include "io/response_store.hpp"
#include "io/wire/http_status.hpp"
#include "io/wire/json_writer.hpp"
#include "tests/support/json_text.hpp"

using namespace troupe;
using troupe::testing::json_at;

namespace {

errc code_of(const std::optional<wire_fault>& fault) {
  return fault ? fault->code : errc::ok;
}

std::string quoted(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

http_request request_from(std::string host, std::string origin = {}) {
  http_request request;
  request.method = "GET";
  request.target = "/health";
  request.headers = {{"host", std::move(host)}};
  if (!origin.empty())
    request.headers.emplace_back("origin", std::move(origin));
  return request;
}

stored_response response(std::string id, std::vector<std::shared_ptr<const chat_message>> conversation,
                         std::string tenant = {}) {
  return {std::move(id), std::move(tenant), std::move(conversation), "{}"};
}

template <class Event>
const Event& generated(const run_event& e) {
  return std::get<Event>(std::get<generation_event>(e.event));
}

std::shared_ptr<const chat_message> message(std::size_t bytes) {
  return std::make_shared<const chat_message>(chat_message{"user", std::string(bytes, 'x'), {}, {}, {}});
}

} // namespace

TEST_CASE("strings are escaped, and bad UTF-8 becomes replacement characters") {
  CHECK(quoted("a\"b\\c\n\r\t\x01\x7f") == R"("a\"b\\c\n\r\t\u0001\u007f")");
  CHECK(quoted("é€😀") == "\"é€😀\"");
  CHECK(quoted("\xc0\xaf") == R"("\ufffd\ufffd")");
  CHECK(quoted("\xed\xa0\x80") == R"("\ufffd\ufffd\ufffd")");
  CHECK(quoted("\xf4\x90\x80\x80") == R"("\ufffd\ufffd\ufffd\ufffd")");
  CHECK(quoted("ok\xe2\x82") == R"("ok\ufffd\ufffd")");
  CHECK(quoted("\xf0\x9f\x98") == R"("\ufffd\ufffd\ufffd")");
  CHECK(quoted("") == "\"\"");
}

TEST_CASE("numbers read back as they were, and what is no number is null") {
  std::string out;
  json_writer w(out);
  w.begin_array().number(0.1).number(-2).number(1e300).number(0.0 / 0.0).integer(-7).end_array();
  CHECK(json_at(out, "/0") == "0.1");
  CHECK(json_at(out, "/2") == "1e+300");
  CHECK(json_at(out, "/3") == "null");
  CHECK(json_at(out, "/4") == "-7");
}

TEST_CASE("every error has a status, a type and a code") {
  for (int i = 1; i <= static_cast<int>(errc::internal); ++i) {
    const auto code = static_cast<errc>(i);
    CAPTURE(name_of(code));
    const http_failure failure = http_failure_of(code);
    CHECK(failure.status >= 400);
    CHECK(failure.status < 600);
    CHECK(!failure.type.empty());
    CHECK(!failure.code.empty());
    CHECK(http_reason(failure.status) != "Unknown");
    CHECK((failure.retry_after_s > 0) == (failure.status == 429 || failure.status == 503));
    const std::string body = error_body({code, "It is so.", "field", {}});
    CHECK(testing::json_keys(body, "/error") == std::vector<std::string>{"message", "type", "param", "code"});
    CHECK(json_at(error_event({code, "It is so.", {}, {}}, "lane"), "/status") == std::to_string(failure.status));
    CHECK(json_at(error_event({code, "It is so.", {}, {}}, "lane"), "/stream_id") == "lane");
  }
  CHECK(http_failure_of(errc::queue_full).status == 429);
  CHECK(http_failure_of(errc::shutting_down).status == 503);
  CHECK(http_failure_of(errc::context_full).code == "context_length_exceeded");
}

TEST_CASE("shares never exceed their budget, and give back what they hold when they shrink or go") {
  byte_budget budget(1000, 0);
  byte_share first(budget);
  CHECK(first.resize(600));
  {
    byte_share second(budget);
    CHECK(second.resize(400));
    CHECK_FALSE(second.resize(401));
    CHECK_FALSE(first.resize(601));
    CHECK(budget.bytes() == 1000);
    CHECK(first.resize(100));
    CHECK(second.resize(900));
  }
  CHECK(budget.bytes() == 100);
  CHECK(first.resize(1000));
}

TEST_CASE("a small holding is free where the budget says so") {
  byte_budget budget(1000, 100);
  byte_share small(budget), large(budget);
  CHECK(large.resize(1000));
  CHECK(small.resize(100));
  CHECK_FALSE(small.resize(101));
  CHECK(large.resize(100));
  CHECK(budget.bytes() == 0);
}

TEST_CASE("an inbox overflows when its budget is used up by others") {
  byte_budget budget(3000, 0);
  byte_share others(budget);
  const auto inbox = std::make_shared<event_inbox>(10'000, budget, [] {});
  const auto sink = inbox->sink(1);
  sink->push(text_delta{std::string(1000, 'x'), {}});
  CHECK_FALSE(inbox->overflowed());
  REQUIRE(others.resize(1500));
  sink->push(text_delta{std::string(1000, 'x'), {}});
  CHECK(inbox->overflowed());
  std::vector<run_event> events;
  inbox->take(events);
  CHECK(events.size() == 1);
  CHECK(budget.bytes() == 1500);
}

TEST_CASE("an inbox wakes once a batch and never after it is closed") {
  int wakes = 0;
  byte_budget budget(1 << 20, 0);
  const auto inbox = std::make_shared<event_inbox>(10'000, budget, [&] { ++wakes; });
  const auto sink = inbox->sink(3);
  sink->push(text_delta{"a", {}});
  sink->push(text_delta{"b", {}});
  CHECK(wakes == 1);
  std::vector<run_event> events;
  inbox->take(events);
  REQUIRE(events.size() == 2);
  CHECK(events[0].run == 3);
  sink->push(generation_finished{});
  CHECK(wakes == 2);
  inbox->take(events);
  CHECK(events.size() == 3);
  inbox->close();
  sink->push(text_delta{"late", {}});
  CHECK(wakes == 2);
  events.clear();
  inbox->take(events);
  CHECK(events.empty());
}

TEST_CASE("an inbox that is full drops the rest, says so and wakes again") {
  int wakes = 0;
  byte_budget budget(1 << 20, 0);
  const auto inbox = std::make_shared<event_inbox>(2000, budget, [&] { ++wakes; });
  const auto sink = inbox->sink(1);
  sink->push(text_delta{std::string(1000, 'x'), {}});
  CHECK(!inbox->overflowed());
  sink->push(text_delta{std::string(1000, 'x'), {}});
  CHECK(inbox->overflowed());
  CHECK(wakes == 2);
  sink->push(text_delta{"y", {}});
  CHECK(wakes == 2);
  std::vector<run_event> events;
  inbox->take(events);
  CHECK(events.size() == 1);
  CHECK(inbox->overflowed());
}

TEST_CASE("neighbouring deltas of one run and kind are joined, others are not") {
  std::vector<run_event> events;
  events.push_back({1, generation_started{}});
  events.push_back({1, text_delta{"a", {{"a", -1.f, {}}}}});
  events.push_back({1, text_delta{"b", {{"b", -2.f, {}}}}});
  events.push_back({2, text_delta{"c", {}}});
  events.push_back({1, reasoning_delta{"d"}});
  events.push_back({1, reasoning_delta{"e"}});
  events.push_back({1, generation_finished{}});
  join_deltas(events);
  REQUIRE(events.size() == 5);
  CHECK(generated<text_delta>(events[1]).text == "ab");
  CHECK(generated<text_delta>(events[1]).logprobs.size() == 2);
  CHECK(events[2].run == 2);
  CHECK(generated<reasoning_delta>(events[3]).text == "de");
  CHECK(std::holds_alternative<generation_finished>(std::get<generation_event>(events[4].event)));
}

TEST_CASE("stored responses are found by their tenant alone, and the oldest goes first") {
  response_store store({2, 1 << 20});
  store.put(response("a", {message(1)}, "t"));
  store.put(response("b", {message(1)}, "t"));
  CHECK(store.conversation("a", "t"));
  CHECK(!store.conversation("a", "other"));
  CHECK(!store.json("a", ""));
  store.put(response("c", {message(1)}, "t"));
  CHECK(store.size() == 2);
  CHECK(!store.conversation("a", "t"));
  CHECK(*store.json("c", "t") == "{}");
  CHECK(store.erase("c", "other") == store_answer::unknown);
  CHECK(store.erase("c", "t") == store_answer::done);
  CHECK(store.erase("c", "t") == store_answer::unknown);
}

TEST_CASE("stored responses stay within their bytes, and shared messages count once") {
  response_store store({100, 50'000});
  const auto shared = message(20'000);
  store.put(response("a", {shared}));
  store.put(response("b", {shared, message(10)}));
  CHECK(store.size() == 2);
  CHECK(store.bytes() > 20'000);
  CHECK(store.bytes() < 30'000);
  store.put(response("c", {message(20'000)}));
  CHECK(store.size() == 3);
  store.put(response("d", {message(10'000)}));
  CHECK(store.bytes() <= 50'000);
  CHECK(store.conversation("d", ""));
  CHECK(!store.conversation("a", ""));
  store.put(response("huge", {message(60'000)}));
  CHECK(!store.conversation("huge", ""));
  CHECK(store.bytes() <= 50'000);
  for (const char* id : {"b", "c", "d"})
    store.erase(id, "");
  CHECK(store.size() == 0);
  CHECK(store.bytes() == 0);
}

TEST_CASE("on loopback only names of this machine are served") {
  const access_rules rules({"127.0.0.1", true, {}, {}});
  for (const char* host : {"127.0.0.1:8000", "127.0.0.1", "localhost:8000", "LOCALHOST", "[::1]:8000", "[::1]", "127.0.0.9:1"})
    CHECK_MESSAGE(!rules.check_source(request_from(host)), host);
  for (const char* host : {"evil.example", "evil.example:8000", "localhost.evil.example", "127.0.0.1.evil.example",
                           "127.evil.example", "127.0.0", "127.0.0.0.1", "127.0.0.256", "127.0.0.-1", "127..0.1", "128.0.0.1",
                           "10.0.0.1:8000", "localhost:80x", "localhost:", "[::1"})
    CHECK_MESSAGE(code_of(rules.check_source(request_from(host))) == errc::forbidden, host);
  http_request without;
  CHECK(code_of(rules.check_source(without)) == errc::invalid_argument);
  http_request twice = request_from("localhost");
  twice.headers.emplace_back("host", "localhost");
  CHECK(code_of(rules.check_source(twice)) == errc::invalid_argument);
  without.version = 10;
  CHECK(!rules.check_source(without));
  const access_rules open({"0.0.0.0", false, {}, {"k"}});
  CHECK(!open.check_source(request_from("chat.example.com")));
}

TEST_CASE("an Origin must be the server's own or allowed") {
  const access_rules rules({"127.0.0.1", true, {"https://chat.example"}, {}});
  CHECK(!rules.check_source(request_from("localhost:8000", "http://localhost:8000")));
  CHECK(!rules.check_source(request_from("localhost:8000", "https://chat.example")));
  for (const char* origin : {"http://evil.example", "null", "http://localhost:9000", "http://127.0.0.1:8000", "localhost:8000"})
    CHECK_MESSAGE(code_of(rules.check_source(request_from("localhost:8000", origin))) == errc::forbidden, origin);
  CHECK(rules.cors_headers(request_from("localhost:8000", "https://chat.example"))[0].second == "https://chat.example");
  CHECK(rules.cors_headers(request_from("localhost:8000", "http://evil.example")).empty());
  CHECK(rules.cors_headers(request_from("localhost:8000")).empty());
  const access_rules any({"127.0.0.1", true, {"*"}, {}});
  CHECK(!any.check_source(request_from("localhost:8000", "http://evil.example")));
}

TEST_CASE("a key comes as a bearer or as a subprotocol, and names a tenant without showing itself") {
  const access_rules rules({"127.0.0.1", true, {}, {"secret-1", "secret-2"}});
  std::string tenant;
  http_request request = request_from("localhost");
  CHECK(code_of(rules.check_key(request, tenant)) == errc::unauthorized);
  for (const char* wrong : {"Bearer secret-", "Bearer secret-11", "Bearer ", "Basic secret-1", "secret-1"}) {
    request.headers = {{"authorization", wrong}};
    CHECK_MESSAGE(rules.check_key(request, tenant).has_value(), wrong);
  }
  request.headers = {{"authorization", "bearer secret-2"}};
  CHECK(!rules.check_key(request, tenant));
  CHECK(!tenant.empty());
  CHECK(tenant.find("secret") == std::string::npos);
  const std::string second = tenant;
  request.headers = {{"sec-websocket-protocol", "realtime, openai-insecure-api-key.secret-1"}};
  CHECK(!rules.check_key(request, tenant));
  CHECK(tenant != second);
  CHECK(chosen_subprotocol("openai-insecure-api-key.secret-1, realtime") == "realtime");
  CHECK(chosen_subprotocol("openai-insecure-api-key.secret-1") == "");
  const access_rules none({"127.0.0.1", true, {}, {}});
  request.headers.clear();
  CHECK(!none.check_key(request, tenant));
}
