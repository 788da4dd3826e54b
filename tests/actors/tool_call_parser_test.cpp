#include <doctest/doctest.h>

#include "actors/session/tool_call_parser.hpp"
#include "config/limits.hpp"

using namespace troupe;

TEST_CASE("a tool call's name is decoded and its arguments are left as they are") {
  const auto call =
      parse_tool_call(" {\"name\" : \"get\\u0041\\ud83d\\ude00\\n\", \"arguments\" : { \"a\" : [1, -2.5e3, true, null] } } ");
  REQUIRE(call);
  CHECK(call->name == "getA\U0001F600\n");
  CHECK(call->arguments == "{ \"a\" : [1, -2.5e3, true, null] }");
}

TEST_CASE("absent arguments are an empty object, arguments in a string are taken out of it") {
  CHECK(parse_tool_call("{\"name\":\"f\"}")->arguments == "{}");
  CHECK(parse_tool_call("{\"name\":\"f\",\"parameters\":{\"x\":1}}")->arguments == "{\"x\":1}");
  CHECK(parse_tool_call("{\"name\":\"f\",\"arguments\":\"{\\\"x\\\":1}\"}")->arguments == "{\"x\":1}");
}

TEST_CASE("what is not strict JSON of that shape is no tool call") {
  for (const auto* text : {"", "{", "[]", "{}", "{\"name\":1}", "{\"name\":\"\"}", "{\"arguments\":{}}", "{\"name\":\"f\"} x",
                           "{\"name\":\"f\",}", "{\"name\":\"f\",\"arguments\":[1]}", "{\"name\":\"f\",\"arguments\":\"no\"}",
                           "{\"name\":\"f\",\"arguments\":{\"a\":01}}", "{\"name\":\"f\",\"arguments\":{\"a\":.5}}",
                           "{\"name\":\"f\",\"arguments\":{a:1}}", "{'name':'f'}", "{\"name\":\"f\\x\"}",
                           "{\"name\":\"\\ud800\"}", "{\"name\":\"a\nb\"}", "{\"name\":\"f\",\"arguments\":{\"a\":tru}}"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_tool_call(text));
  }
}

TEST_CASE("nesting beyond the limit is refused, not followed") {
  const auto nested = [](int depth) {
    return "{\"name\":\"f\",\"arguments\":{\"a\":" + std::string(static_cast<std::size_t>(depth), '[') +
           std::string(static_cast<std::size_t>(depth), ']') + "}}";
  };
  CHECK(parse_tool_call(nested(limits::json_depth_max - 2)));
  CHECK_FALSE(parse_tool_call(nested(limits::json_depth_max + 1)));
  CHECK_FALSE(parse_tool_call(nested(1'000'000)));
}
