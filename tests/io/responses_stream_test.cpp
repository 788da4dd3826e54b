#include <doctest/doctest.h>

#include "io/wire/responses_stream.hpp"
#include "tests/support/json_text.hpp"

using namespace troupe;
using troupe::testing::json_at;
using troupe::testing::valid_json;

namespace {

struct recorded {
  explicit recorded(response_echo echo = {}, std::string lane = {})
      : stream({"resp_1", "m", 1'700'000'000}, std::move(echo), std::move(lane),
               [this](std::string_view prefix) { return std::string(prefix) + std::to_string(++ids); }) {}

  recorded& take(const generation_event& event) {
    stream.consume(event, events);
    return *this;
  }
  std::vector<std::string> types() const {
    std::vector<std::string> out;
    for (const response_event& e : events)
      out.emplace_back(e.type);
    return out;
  }

  int ids = 0;
  responses_stream stream;
  std::vector<response_event> events;
};

const token_usage usage{20, 16, 5, 2};

} // namespace

TEST_CASE("reasoning and a message come in the order that the official clients need") {
  recorded r;
  r.take(generation_started{20, 16}).take(reasoning_delta{"The user"}).take(reasoning_delta{" greets."});
  r.take(text_delta{"Hello", {}}).take(text_delta{" there", {}}).take(generation_finished{finish_reason::stop, usage});
  CHECK(r.types() ==
        std::vector<std::string>{"response.created", "response.in_progress", "response.output_item.added",
                                 "response.content_part.added", "response.reasoning_text.delta",
                                 "response.reasoning_text.delta", "response.reasoning_text.done", "response.content_part.done",
                                 "response.output_item.done", "response.output_item.added", "response.content_part.added",
                                 "response.output_text.delta", "response.output_text.delta", "response.output_text.done",
                                 "response.content_part.done", "response.output_item.done", "response.completed"});
  for (std::size_t i = 0; i < r.events.size(); ++i) {
    CAPTURE(i);
    CHECK(valid_json(r.events[i].json));
    CHECK(json_at(r.events[i].json, "/type") == r.events[i].type);
    CHECK(json_at(r.events[i].json, "/sequence_number") == std::to_string(i));
    CHECK(json_at(r.events[i].json, "/stream_id") == "<none>");
  }
  for (const std::size_t i : {0u, 1u, 16u})
    CHECK(json_at(r.events[i].json, "/response/id") == "resp_1");
  CHECK(json_at(r.events[0].json, "/response/status") == "in_progress");
  CHECK(json_at(r.events[0].json, "/response/output") == "[]");
  CHECK(json_at(r.events[0].json, "/response/usage") == "null");
  CHECK(json_at(r.events[2].json, "/output_index") == "0");
  CHECK(json_at(r.events[2].json, "/item") ==
        R"({"id":"rs_1","type":"reasoning","summary":[],"content":[],"status":"in_progress"})");
  CHECK(json_at(r.events[3].json, "/part") == R"({"type":"reasoning_text","text":""})");
  for (std::size_t i = 3; i < 8; ++i) {
    CHECK(json_at(r.events[i].json, "/item_id") == "rs_1");
    CHECK(json_at(r.events[i].json, "/output_index") == "0");
    CHECK(json_at(r.events[i].json, "/content_index") == "0");
  }
  CHECK(json_at(r.events[6].json, "/text") == "The user greets.");
  CHECK(json_at(r.events[8].json, "/item/content/0/text") == "The user greets.");
  CHECK(json_at(r.events[9].json, "/output_index") == "1");
  CHECK(json_at(r.events[9].json, "/item/role") == "assistant");
  CHECK(json_at(r.events[9].json, "/item/content") == "[]");
  CHECK(json_at(r.events[11].json, "/delta") == "Hello");
  CHECK(json_at(r.events[11].json, "/logprobs") == "[]");
  CHECK(json_at(r.events[13].json, "/text") == "Hello there");
  CHECK(json_at(r.events[14].json, "/part/annotations") == "[]");
  const std::string& last = r.events[16].json;
  CHECK(json_at(last, "/response/status") == "completed");
  CHECK(json_at(last, "/response/output/0/type") == "reasoning");
  CHECK(json_at(last, "/response/output/1/content/0/text") == "Hello there");
  CHECK(
      json_at(last, "/response/usage") ==
      R"({"input_tokens":20,"input_tokens_details":{"cached_tokens":16},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":25})");
  CHECK(json_at(last, "/response/error") == "null");
  CHECK(r.stream.ended());
  CHECK(r.stream.output_message().content == "Hello there");
  CHECK(r.stream.output_message().reasoning == "The user greets.");
}

TEST_CASE("a tool call is an item of its own, and text after it another message") {
  recorded r({}, "lane");
  r.take(generation_started{}).take(text_delta{"I look.", {}}).take(tool_call_made{{"call_1", "f", R"({"a":1})"}});
  r.take(text_delta{"Done.", {}}).take(generation_finished{finish_reason::tool_calls, usage});
  CHECK(r.types() ==
        std::vector<std::string>{"response.created", "response.in_progress", "response.output_item.added",
                                 "response.content_part.added", "response.output_text.delta", "response.output_text.done",
                                 "response.content_part.done", "response.output_item.done", "response.output_item.added",
                                 "response.function_call_arguments.delta", "response.function_call_arguments.done",
                                 "response.output_item.done", "response.output_item.added", "response.content_part.added",
                                 "response.output_text.delta", "response.output_text.done", "response.content_part.done",
                                 "response.output_item.done", "response.completed"});
  for (const response_event& e : r.events)
    CHECK(json_at(e.json, "/stream_id") == "lane");
  CHECK(json_at(r.events[8].json, "/item/type") == "function_call");
  CHECK(json_at(r.events[8].json, "/item/call_id") == "call_1");
  CHECK(json_at(r.events[8].json, "/item/arguments") == "");
  CHECK(json_at(r.events[9].json, "/delta") == R"({"a":1})");
  CHECK(json_at(r.events[10].json, "/arguments") == R"({"a":1})");
  CHECK(json_at(r.events[10].json, "/output_index") == "1");
  CHECK(json_at(r.events[11].json, "/item/status") == "completed");
  CHECK(json_at(r.events[12].json, "/output_index") == "2");
  CHECK(json_at(r.events[18].json, "/response/output/2/content/0/text") == "Done.");
  CHECK(r.stream.output_message().tool_calls.size() == 1);
}

TEST_CASE("an answer cut short is incomplete and says why") {
  recorded r;
  r.take(generation_started{}).take(text_delta{"Hel", {}}).take(generation_finished{finish_reason::length, usage});
  CHECK(r.events.back().type == "response.incomplete");
  CHECK(json_at(r.events.back().json, "/response/status") == "incomplete");
  CHECK(json_at(r.events.back().json, "/response/incomplete_details/reason") == "max_output_tokens");
  CHECK(json_at(r.events.back().json, "/response/output/0/status") == "incomplete");
}

TEST_CASE("a cancelled response ends as an incomplete one with status cancelled") {
  recorded r;
  r.take(generation_started{}).take(text_delta{"Hel", {}}).take(generation_finished{finish_reason::cancelled, usage});
  CHECK(r.events.back().type == "response.incomplete");
  CHECK(json_at(r.events.back().json, "/response/status") == "cancelled");
  CHECK(json_at(r.events.back().json, "/response/incomplete_details") == "null");
}

TEST_CASE("a failure after the start is response.failed, and nothing follows the end") {
  recorded r;
  r.take(generation_started{}).take(text_delta{"Hel", {}}).take(generation_failed{{errc::device_failed, "Gone."}, usage});
  CHECK(r.events.back().type == "response.failed");
  CHECK(json_at(r.events.back().json, "/response/error") == R"({"code":"device_failed","message":"Gone."})");
  CHECK(!r.stream.continuable());
  const std::size_t count = r.events.size();
  r.take(text_delta{"late", {}}).take(generation_finished{finish_reason::stop, usage});
  CHECK(r.events.size() == count);
}

TEST_CASE("a request for the prompt alone is complete without output") {
  response_echo echo;
  echo.prefill_only = true;
  recorded r(echo);
  r.take(generation_started{}).take(generation_finished{finish_reason::length, usage});
  CHECK(r.types() == std::vector<std::string>{"response.created", "response.in_progress", "response.completed"});
  CHECK(json_at(r.events.back().json, "/response/output") == "[]");
  CHECK(!r.stream.has_output());
}

TEST_CASE("the response object repeats its request") {
  response_echo echo;
  echo.instructions = "be brief";
  echo.previous_response_id = "resp_0";
  echo.max_output_tokens = 9;
  echo.temperature = 0.5;
  echo.metadata = R"({"k":"v"})";
  echo.store = false;
  recorded r(echo);
  r.take(generation_started{});
  const std::string& json = r.events[0].json;
  CHECK(json_at(json, "/response/instructions") == "be brief");
  CHECK(json_at(json, "/response/previous_response_id") == "resp_0");
  CHECK(json_at(json, "/response/max_output_tokens") == "9");
  CHECK(json_at(json, "/response/temperature") == "0.5");
  CHECK(json_at(json, "/response/top_p") == "null");
  CHECK(json_at(json, "/response/metadata/k") == "v");
  CHECK(json_at(json, "/response/store") == "false");
  CHECK(json_at(json, "/response/text/format/type") == "text");
}

TEST_CASE("log probabilities stand in the deltas and in the done events") {
  recorded r;
  r.take(generation_started{}).take(text_delta{"a", {{"a", -1.f, {}}}}).take(text_delta{"b", {{"b", -2.f, {}}}});
  r.take(generation_finished{finish_reason::stop, usage});
  CHECK(json_at(r.events[4].json, "/logprobs/0/token") == "a");
  CHECK(json_at(r.events[6].json, "/logprobs/1/logprob") == "-2");
  CHECK(json_at(r.events.back().json, "/response/output/0/content/0/logprobs/1/token") == "b");
}
