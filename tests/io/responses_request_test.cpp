#include <doctest/doctest.h>

#include "config/limits.hpp"
#include "io/wire/raw_json.hpp"
#include "io/wire/responses_request.hpp"

using namespace troupe;

namespace {

responses_request good(const std::string& json) {
  responses_request out;
  const auto fault = parse_responses_request(json, out);
  REQUIRE_MESSAGE(!fault, json, ": ", fault ? fault->message : "");
  return out;
}

wire_fault bad(const std::string& json) {
  responses_request out;
  const auto fault = parse_responses_request(json, out);
  REQUIRE_MESSAGE(fault.has_value(), json);
  return *fault;
}

std::vector<chat_message> input(const std::string& items) {
  return good(R"({"input":[)" + items + "]}").input;
}

} // namespace

TEST_CASE("a string is a user's message") {
  const responses_request r =
      good(R"({"model":"m","input":"hi","instructions":"be brief","max_output_tokens":9,"temperature":0.2,
    "top_p":0.5,"store":false,"metadata":{"a": "b"},"reasoning":{"effort":"none","summary":"auto"},"stream":true,
    "include":["reasoning.encrypted_content"],"truncation":"auto","previous_response_id":"resp_1","stream_id":"a.B-1_"})");
  REQUIRE(r.input.size() == 1);
  CHECK(r.input[0].role == "user");
  CHECK(r.input[0].content == "hi");
  CHECK(*r.echo.instructions == "be brief");
  CHECK(*r.generation.max_tokens == 9);
  CHECK(*r.echo.max_output_tokens == 9);
  CHECK(*r.generation.sampling.temperature == doctest::Approx(0.2));
  CHECK(*r.echo.top_p == doctest::Approx(0.5));
  CHECK(!r.echo.store);
  CHECK(r.echo.metadata == R"({"a": "b"})");
  CHECK(*r.generation.enable_thinking == false);
  CHECK(r.echo.effort == "none");
  CHECK(r.stream);
  CHECK(r.echo.previous_response_id == "resp_1");
  CHECK(r.stream_id == "a.B-1_");
  CHECK(!r.generation.sampling.logprobs);
}

TEST_CASE("truncation says what happens beyond the context, unless context_overflow does") {
  CHECK_FALSE(good(R"({"input":"x"})").generation.overflow);
  CHECK_FALSE(good(R"({"input":"x","truncation":null})").generation.overflow);
  CHECK(good(R"({"input":"x","truncation":"auto"})").generation.overflow == overflow_policy::window);
  CHECK(good(R"({"input":"x","truncation":"disabled"})").generation.overflow == overflow_policy::refuse);
  CHECK(good(R"({"input":"x","truncation":"disabled","context_overflow":"compress"})").generation.overflow ==
        overflow_policy::compress);
}

TEST_CASE("items that the assistant made in a row are one message") {
  const auto messages = input(R"({"role":"developer","content":"sys"},
    {"type":"message","role":"user","content":[{"type":"input_text","text":"weather?"}]},
    {"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]},
    {"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look."}]},
    {"type":"function_call","call_id":"c1","name":"f","arguments":"{\"x\":1}"},
    {"type":"function_call","call_id":"c2","name":"g","arguments":"{}"},
    {"type":"function_call_output","call_id":"c1","output":"12C"},
    {"type":"function_call_output","call_id":"c2","output":[{"type":"input_text","text":"13C"}]},
    {"type":"message","role":"assistant","content":"It is 12."},
    {"role":"user","content":"thanks"})");
  REQUIRE(messages.size() == 7);
  CHECK(messages[0].role == "system");
  CHECK(messages[1].content == "weather?");
  CHECK(messages[2].role == "assistant");
  CHECK(messages[2].reasoning == "hm");
  CHECK(messages[2].content == "I look.");
  REQUIRE(messages[2].tool_calls.size() == 2);
  CHECK(messages[2].tool_calls[0].arguments == R"({"x":1})");
  CHECK(messages[3].role == "tool");
  CHECK(messages[3].tool_call_id == "c1");
  CHECK(messages[4].content == "13C");
  CHECK(messages[5].content == "It is 12.");
  CHECK(messages[6].role == "user");
}

TEST_CASE("two assistant messages in a row stay two") {
  const auto messages = input(R"({"role":"assistant","content":"a"},{"role":"assistant","content":"b"})");
  REQUIRE(messages.size() == 2);
  CHECK(messages[1].content == "b");
}

TEST_CASE("reasoning without text gives nothing") {
  CHECK(input(R"({"type":"reasoning","id":"rs","summary":[]},{"role":"user","content":"x"})").size() == 1);
}

TEST_CASE("flat tools become nested ones with their JSON unchanged") {
  const responses_request r = good(
      R"({"input":"x","tools":[{"type":"function","name":"f","description":"d \u00e9","parameters":{"b":1.0,"a":{}},"strict":true}]})");
  REQUIRE(r.generation.tools.size() == 1);
  CHECK(r.generation.tools[0] ==
        R"({"type":"function","function":{"name":"f","description":"d \u00e9","parameters":{"b":1.0,"a":{}}}})");
  CHECK(r.echo.tools.find("\"strict\":true") != std::string::npos);
  const responses_request none = good(R"({"input":"x","tool_choice":"none","tools":[{"type":"function","name":"f"}]})");
  CHECK(none.generation.tools.empty());
  CHECK(none.echo.tool_choice == "none");
}

TEST_CASE("generate false asks for the prompt alone and needs no input") {
  const responses_request r = good(R"({"generate":false,"instructions":"long","input":[]})");
  CHECK(r.echo.prefill_only);
  CHECK(*r.generation.max_tokens == 0);
}

TEST_CASE("log probabilities are asked for by include or top_logprobs") {
  CHECK(good(R"({"input":"x","include":["message.output_text.logprobs"]})").generation.sampling.logprobs);
  CHECK(good(R"({"input":"x","top_logprobs":2})").generation.sampling.top_logprobs == 2);
}

TEST_CASE("a wrong field of a Responses request is named") {
  struct row {
    const char* json;
    const char* param;
  };
  const row rows[] = {
      {R"({})", "input"},
      {R"({"input":5})", "input"},
      {R"({"input":[5]})", "input"},
      {R"({"input":[{"type":"item_reference","id":"x"}]})", "input[0].type"},
      {R"({"input":[{}]})", "input[0].type"},
      {R"({"input":[{"type":"message","role":"robot","content":"x"}]})", "input[0].role"},
      {R"({"input":[{"type":"message","role":"user"}]})", "input[0].content"},
      {R"({"input":[{"type":"message","role":"user","content":[{"type":"input_image"}]}]})", "input[0].content[0].type"},
      {R"({"input":[{"type":"function_call"}]})", "input[0].name"},
      {R"({"input":[{"type":"function_call_output"}]})", "input[0].output"},
      {R"({"input":"x","tools":[{"type":"web_search"}]})", "tools[0].type"},
      {R"({"input":"x","tools":[{"type":"function"}]})", "tools[0].name"},
      {R"({"input":"x","tool_choice":"required"})", "tool_choice"},
      {R"({"input":"x","text":{"format":{"type":"json_schema"}}})", "text.format.type"},
      {R"({"input":"x","background":true})", "background"},
      {R"({"input":"x","conversation":"c"})", "conversation"},
      {R"({"input":"x","truncation":"never"})", "truncation"},
      {R"({"input":"x","metadata":[]})", "metadata"},
      {R"({"input":"x","max_output_tokens":-1})", "max_output_tokens"},
      {R"({"input":"x","temperature":3})", "temperature"},
      {R"({"input":"x","store":"yes"})", "store"},
      {R"({"input":"x","stream_id":"a b"})", "stream_id"},
      {R"({"input":"x","stream_id":""})", "stream_id"},
      {R"({"input":"x","reasoning":"high"})", "reasoning"},
      {R"({"input":"x","instructions":5})", "instructions"},
  };
  for (const row& r : rows) {
    CAPTURE(r.json);
    CHECK(bad(r.json).param == r.param);
  }
  CHECK(bad(R"({"input":"x","metadata":{"a":")" + std::string(limits::metadata_bytes_max, 'x') + "\"}}").code ==
        errc::too_large);
}

TEST_CASE("lane names are bounded and plain") {
  CHECK(valid_stream_id("a"));
  CHECK(valid_stream_id(std::string(256, 'z')));
  CHECK(!valid_stream_id(std::string(257, 'z')));
  CHECK(!valid_stream_id("ü"));
  CHECK(!valid_stream_id("a/b"));
}

TEST_CASE("a socket's events are told apart") {
  socket_event event;
  CHECK(
      !parse_socket_event(R"({"type":"response.steer","previous_response_id":"r","input":[{"a": 1}],"stream_id":"s"})", event));
  CHECK(event.type == "response.steer");
  CHECK(event.input == R"([{"a": 1}])");
  CHECK(event.stream_id == "s");
  socket_event other;
  const auto typeless = parse_socket_event("{}", other);
  REQUIRE(typeless);
  CHECK(typeless->param == "type");
  const auto nonsense = parse_socket_event("nonsense", other);
  REQUIRE(nonsense);
  CHECK(nonsense->wire_code == "invalid_json");
}

TEST_CASE("raw JSON is found whatever stands around it") {
  const std::string json =
      " { \"a\" : [1, {\"tools\":0}] ,\"t\\\"x\":\"}\", \"tools\" :\n[ 1 ,\"a,]\\\"\" ,{\"b\":[2]}, true ] } ";
  CHECK(raw_member(json, "tools") == "[ 1 ,\"a,]\\\"\" ,{\"b\":[2]}, true ]");
  CHECK(raw_member(json, "none").empty());
  const auto items = raw_items(raw_member(json, "tools"));
  REQUIRE(items.size() == 4);
  CHECK(items[0] == "1");
  CHECK(items[1] == "\"a,]\\\"\"");
  CHECK(items[2] == "{\"b\":[2]}");
  CHECK(items[3] == "true");
  CHECK(raw_items("[]").empty());
  CHECK(raw_items("{}").empty());
}
