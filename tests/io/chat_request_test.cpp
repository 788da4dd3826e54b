#include <doctest/doctest.h>

#include "config/limits.hpp"
#include "io/wire/chat_request.hpp"
#include "io/wire/completion.hpp"

using namespace troupe;

namespace {

std::optional<wire_fault> parse(const std::string& json, chat_request& out) {
  return parse_chat_request(json, out);
}

// A request with one user message and the given members besides.
std::string with(const std::string& members) {
  return R"({"messages":[{"role":"user","content":"hi"}])" + (members.empty() ? "" : "," + members) + "}";
}

chat_request good(const std::string& members) {
  chat_request out;
  const auto fault = parse(with(members), out);
  REQUIRE_MESSAGE(!fault, members, ": ", fault ? fault->message : "");
  return out;
}

wire_fault bad(const std::string& json) {
  chat_request out;
  const auto fault = parse(json, out);
  REQUIRE_MESSAGE(fault.has_value(), json);
  CHECK(!fault->message.empty());
  return *fault;
}

chat_message one_message(const std::string& json) {
  chat_request out;
  const auto fault = parse(R"({"messages":[)" + json + "]}", out);
  REQUIRE_MESSAGE(!fault, json, ": ", fault ? fault->message : "");
  REQUIRE(out.generation.messages.size() == 1);
  return out.generation.messages[0];
}

} // namespace

TEST_CASE("a chat request's fields reach the runtime's request") {
  const chat_request r =
      good(R"("model":"m","stream":true,"stream_options":{"include_usage":true},"temperature":0.5,"top_p":0.9,
    "top_k":20,"min_p":0.05,"repetition_penalty":1.1,"presence_penalty":-2,"frequency_penalty":2,"seed":-1,"stop":["a","bc"],
    "max_tokens":7,"ignore_eos":true,"logprobs":true,"top_logprobs":3,"logit_bias":{"5":-100,"7":1.5},"n":1,
    "enable_thinking":false,"user":"u","unknown":{"deep":[1]})");
  CHECK(r.model == "m");
  CHECK(r.stream);
  CHECK(r.include_usage);
  const sampling_request& s = r.generation.sampling;
  CHECK(*s.temperature == doctest::Approx(0.5));
  CHECK(*s.top_p == doctest::Approx(0.9));
  CHECK(*s.top_k == 20);
  CHECK(*s.min_p == doctest::Approx(0.05));
  CHECK(*s.repetition_penalty == doctest::Approx(1.1));
  CHECK(*s.presence_penalty == doctest::Approx(-2));
  CHECK(*s.frequency_penalty == doctest::Approx(2));
  CHECK(*s.seed == ~0ull);
  CHECK(s.logprobs);
  CHECK(s.top_logprobs == 3);
  REQUIRE(s.logit_bias.size() == 2);
  CHECK(s.logit_bias[0].first == 5);
  CHECK(s.logit_bias[0].second == doctest::Approx(-100));
  CHECK(r.generation.stop == std::vector<std::string>{"a", "bc"});
  CHECK(*r.generation.max_tokens == 7);
  CHECK(r.generation.ignore_eos);
  CHECK(*r.generation.enable_thinking == false);
}

TEST_CASE("absent and null fields leave the model's defaults alone") {
  for (const char* members :
       {"", R"("temperature":null,"seed":null,"stop":null,"max_tokens":null,"tools":null,"logit_bias":null,
       "stream":null,"n":null,"tool_choice":null,"response_format":null,"stream_options":null,"logprobs":null)"}) {
    const chat_request r = good(members);
    CHECK(!r.stream);
    CHECK(!r.generation.sampling.temperature);
    CHECK(!r.generation.sampling.seed);
    CHECK(!r.generation.max_tokens);
    CHECK(!r.generation.enable_thinking);
    CHECK(r.generation.stop.empty());
    CHECK(r.generation.tools.empty());
    CHECK(!r.generation.sampling.logprobs);
  }
}

TEST_CASE("max_completion_tokens goes before max_tokens, and zero asks for the prompt alone") {
  CHECK(*good(R"("max_tokens":5,"max_completion_tokens":9)").generation.max_tokens == 9);
  CHECK(*good(R"("max_completion_tokens":0)").generation.max_tokens == 0);
}

TEST_CASE("a prompt is pinned by prompt_cache_retention 24h and by nothing else") {
  CHECK(good(R"("prompt_cache_retention":"24h","max_tokens":0)").generation.pin_prompt);
  CHECK_FALSE(good(R"("prompt_cache_retention":"in_memory")").generation.pin_prompt);
  CHECK_FALSE(good(R"("prompt_cache_retention":"in-memory")").generation.pin_prompt);
  CHECK_FALSE(good(R"("prompt_cache_retention":null)").generation.pin_prompt);
  CHECK_FALSE(good(R"("seed":1)").generation.pin_prompt);
}

TEST_CASE("what happens beyond the context is chosen by context_overflow, and a smaller context by context_tokens") {
  CHECK_FALSE(good(R"("seed":1)").generation.overflow);
  CHECK(good(R"("context_overflow":"error")").generation.overflow == overflow_policy::refuse);
  const auto r = good(R"("context_overflow":"window","context_tokens":512)");
  CHECK(r.generation.overflow == overflow_policy::window);
  CHECK(r.generation.context_tokens == 512);
  CHECK(good(R"("context_overflow":"compress")").generation.overflow == overflow_policy::compress);
}

TEST_CASE("each switch for thinking is understood") {
  CHECK(*good(R"("enable_thinking":true)").generation.enable_thinking == true);
  CHECK(*good(R"("chat_template_kwargs":{"enable_thinking":false,"other":1})").generation.enable_thinking == false);
  CHECK(*good(R"("reasoning_effort":"none")").generation.enable_thinking == false);
  CHECK(*good(R"("reasoning_effort":"high")").generation.enable_thinking == true);
  CHECK(*good(R"("reasoning":{"effort":"none"})").generation.enable_thinking == false);
  CHECK(*good(R"("enable_thinking":true,"reasoning_effort":"none")").generation.enable_thinking == true);
}

TEST_CASE("a field of a wrong type or out of range is named") {
  struct row {
    const char* members;
    const char* param;
  };
  const row rows[] = {
      {R"("temperature":2.1)", "temperature"},
      {R"("temperature":-0.1)", "temperature"},
      {R"("temperature":"hot")", "temperature"},
      {R"("top_p":1.01)", "top_p"},
      {R"("top_k":-2)", "top_k"},
      {R"("top_k":1.5)", "top_k"},
      {R"("min_p":1)", "min_p"},
      {R"("repetition_penalty":0)", "repetition_penalty"},
      {R"("presence_penalty":-2.1)", "presence_penalty"},
      {R"("frequency_penalty":3)", "frequency_penalty"},
      {R"("seed":"x")", "seed"},
      {R"("seed":18446744073709551615)", "seed"},
      {R"("stop":5)", "stop"},
      {R"("stop":[""])", "stop"},
      {R"("stop":[1])", "stop"},
      {R"("max_tokens":-1)", "max_tokens"},
      {R"("prompt_cache_retention":"1h")", "prompt_cache_retention"},
      {R"("max_tokens":99999999999)", "max_tokens"},
      {R"("max_completion_tokens":true)", "max_completion_tokens"},
      {R"("n":17)", "n"},
      {R"("n":1.5)", "n"},
      {R"("best_of":2)", "best_of"},
      {R"("n":0)", "n"},
      {R"("stream":"yes")", "stream"},
      {R"("stream_options":[])", "stream_options"},
      {R"("stream_options":{"include_usage":1})", "stream_options.include_usage"},
      {R"("ignore_eos":1)", "ignore_eos"},
      {R"("logprobs":3)", "logprobs"},
      {R"("logprobs":true,"top_logprobs":21)", "top_logprobs"},
      {R"("top_logprobs":2)", "top_logprobs"},
      {R"("logit_bias":{"x":1})", "logit_bias"},
      {R"("logit_bias":{"1":101})", "logit_bias"},
      {R"("logit_bias":[])", "logit_bias"},
      {R"("enable_thinking":"no")", "enable_thinking"},
      {R"("chat_template_kwargs":{"enable_thinking":"no"})", "chat_template_kwargs.enable_thinking"},
      {R"("response_format":{"type":"json_object"})", "response_format.type"},
      {R"("response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{}}})", "response_format.type"},
      {R"("response_format":{})", "response_format.type"},
      {R"("tool_choice":"required")", "tool_choice"},
      {R"("tool_choice":{"type":"function","function":{"name":"f"}})", "tool_choice"},
      {R"("functions":[])", "functions"},
      {R"("tools":{})", "tools"},
      {R"("tools":[{"type":"web_search"}])", "tools[0].type"},
      {R"("tools":[{"type":"function"}])", "tools[0].function"},
      {R"("tools":[{"type":"function","function":{}}])", "tools[0].function.name"},
      {R"("tools":[{"type":"function","function":{"name":"f","parameters":"x"}}])", "tools[0].function.parameters"},
      {R"("model":7)", "model"},
  };
  for (const row& r : rows) {
    CAPTURE(r.members);
    const wire_fault fault = bad(with(r.members));
    CHECK(fault.param == r.param);
    CHECK(http_failure_of(fault.code).status == 400);
  }
}

TEST_CASE("what is not served yet is refused as unsupported, not as wrong") {
  CHECK(bad(with(R"("response_format":{"type":"json_schema"})")).code == errc::unsupported);
  CHECK(bad(with(R"("best_of":3)")).code == errc::unsupported);
  CHECK(bad(with(R"("n":17)")).code == errc::invalid_argument);
  CHECK(bad(with(R"("tool_choice":"required")")).code == errc::unsupported);
}

TEST_CASE("roles, parts and replayed assistant messages are read") {
  CHECK(one_message(R"({"role":"developer","content":"be brief"})").role == "system");
  CHECK(
      one_message(
          R"({"role":"user","content":[{"type":"text","text":"a"},{"type":"input_text","text":"b"},{"type":"text","text":""}]})")
          .content == "ab");
  const chat_message called = one_message(
      R"({"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\": 1}"}}]})");
  CHECK(called.content.empty());
  CHECK(called.reasoning == "hm");
  REQUIRE(called.tool_calls.size() == 1);
  CHECK(called.tool_calls[0].id == "c1");
  CHECK(called.tool_calls[0].name == "f");
  CHECK(called.tool_calls[0].arguments == R"({"a": 1})");
  CHECK(one_message(R"({"role":"assistant","content":"x","reasoning":"r"})").reasoning == "r");
  CHECK(
      one_message(R"({"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":""}}]})").tool_calls[0].arguments ==
      "{}");
  CHECK(one_message(R"({"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]})")
            .tool_calls[0]
            .arguments == R"({"a":1})");
  const chat_message tool = one_message(R"({"role":"tool","tool_call_id":"c1","content":"12C"})");
  CHECK(tool.tool_call_id == "c1");
  CHECK(tool.content == "12C");
  CHECK(one_message(R"({"role":"assistant","content":[{"type":"refusal","refusal":"no"}]})").content == "no");
  CHECK(one_message(R"({"role":"user","content":"\u20ac \ud83d\ude00"})").content == "€ 😀");
}

TEST_CASE("a wrong message is named by its place") {
  struct row {
    const char* messages;
    const char* param;
  };
  const row rows[] = {
      {R"({})", "messages[0].role"},
      {R"({"role":"robot","content":"x"})", "messages[0].role"},
      {R"({"role":"user"})", "messages[0].content"},
      {R"({"role":"user","content":null})", "messages[0].content"},
      {R"({"role":"user","content":5})", "messages[0].content"},
      {R"({"role":"assistant"})", "messages[0].content"},
      {R"({"role":"user","content":"a"},{"role":"user","content":[{"type":"image_url","image_url":{"url":"u"}}]})",
       "messages[1].content[0].type"},
      {R"({"role":"user","content":[{"text":"a"}]})", "messages[0].content[0].type"},
      {R"({"role":"user","content":[{"type":"text"}]})", "messages[0].content[0].text"},
      {R"({"role":"assistant","tool_calls":[{"function":{"arguments":"{}"}}]})", "messages[0].tool_calls[0].function.name"},
      {R"({"role":"assistant","tool_calls":[{"type":"custom"}]})", "messages[0].tool_calls[0].type"},
      {R"("hello")", "messages"},
  };
  for (const row& r : rows) {
    CAPTURE(r.messages);
    CHECK(bad(R"({"messages":[)" + std::string(r.messages) + "]}").param == r.param);
  }
  CHECK(bad(R"({"messages":[]})").param == "messages");
  CHECK(bad(R"({})").param == "messages");
  CHECK(bad(R"({"messages":"x"})").param == "messages");
}

TEST_CASE("tools are passed on byte for byte, and tool_choice none hides them") {
  const std::string tools =
      R"([ {"type":"function", "function":{"name":"f","parameters":{"b":1.50,"a":"\u00e9]\"}"}}} , {"function":{"name":"g"},"type":"function"}])";
  const chat_request r = good(R"("tools":)" + tools);
  REQUIRE(r.generation.tools.size() == 2);
  CHECK(r.generation.tools[0] == R"({"type":"function", "function":{"name":"f","parameters":{"b":1.50,"a":"\u00e9]\"}"}}})");
  CHECK(r.generation.tools[1] == R"({"function":{"name":"g"},"type":"function"})");
  CHECK(good(R"("tool_choice":"auto","tools":)" + tools).generation.tools.size() == 2);
  CHECK(good(R"("tool_choice":"none","tools":)" + tools).generation.tools.empty());
}

TEST_CASE("what is no JSON object, no UTF-8 or nests too deep is refused") {
  for (const char* json : {"", "{", "[]", "5", "\"x\"", "null", "{\"messages\":[}", "{} x", "{\"a\":01}"}) {
    CAPTURE(json);
    CHECK(bad(json).wire_code == "invalid_json");
  }
  CHECK(bad("{\"messages\":[{\"role\":\"user\",\"content\":\"\xc0\xaf\"}]}").message.find("UTF-8") != std::string::npos);
  CHECK(bad("{\"messages\":[{\"role\":\"user\",\"content\":\"\xed\xa0\x80\"}]}").wire_code == "invalid_json");
  const auto nested = [](int levels) {
    return R"({"messages":[{"role":"user","content":"hi"}],"x":)" + std::string(static_cast<std::size_t>(levels), '[') +
           std::string(static_cast<std::size_t>(levels), ']') + "}";
  };
  chat_request out;
  CHECK(!parse(nested(limits::json_depth_max - 3), out));
  CHECK(bad(nested(limits::json_depth_max + 1)).message.find("deeper") != std::string::npos);
  CHECK(bad(nested(100'000)).message.find("deeper") != std::string::npos);
}

TEST_CASE("lists longer than their limits are refused") {
  const auto repeated = [](const std::string& item, int count) {
    std::string out = item;
    for (int i = 1; i < count; ++i)
      out += "," + item;
    return out;
  };
  CHECK(bad(R"({"messages":[)" + repeated(R"({"role":"user","content":"x"})", limits::messages_max + 1) + "]}").code ==
        errc::too_large);
  CHECK(bad(with(R"("stop":[)" + repeated(R"("a")", limits::stop_strings_max + 1) + "]")).param == "stop");
  CHECK(bad(with(R"("stop":")" + std::string(limits::stop_string_bytes_max + 1, 'a') + "\"")).param == "stop");
  std::string bias;
  for (int i = 0; i <= limits::logit_bias_max; ++i)
    bias += (i ? "," : "") + ("\"" + std::to_string(i) + "\":1");
  CHECK(bad(with(R"("logit_bias":{)" + bias + "}")).code == errc::too_large);
}

TEST_CASE("a completion takes text or token ids, one prompt, and no echo") {
  const auto parse_one = [](const std::string& json) {
    completion_request out;
    const auto fault = parse_completion_request(json, out);
    REQUIRE_MESSAGE(!fault, json, ": ", fault ? fault->message : "");
    return out;
  };
  const auto fault_of = [](const std::string& json) {
    completion_request out;
    const auto fault = parse_completion_request(json, out);
    REQUIRE_MESSAGE(fault.has_value(), json);
    return *fault;
  };
  CHECK(*parse_one(R"({"prompt":"once"})").generation.prompt == "once");
  CHECK(*parse_one(R"({"prompt":["once"]})").generation.prompt == "once");
  CHECK(parse_one(R"({"prompt":[1,2,3]})").generation.prompt_tokens == std::vector<token_id>{1, 2, 3});
  CHECK(parse_one(R"({"prompt":[[4,5]]})").generation.prompt_tokens == std::vector<token_id>{4, 5});
  CHECK(*parse_one(R"({"prompt":""})").generation.prompt == "");
  CHECK(*parse_one(R"({"prompt":"x"})").generation.max_tokens == 16);
  const completion_request full = parse_one(
      R"({"prompt":"x","max_tokens":5,"logprobs":2,"stream":true,"stream_options":{"include_usage":true},"stop":"z","ignore_eos":true})");
  CHECK(*full.generation.max_tokens == 5);
  CHECK(full.generation.sampling.logprobs);
  CHECK(full.generation.sampling.top_logprobs == 2);
  CHECK(full.stream);
  CHECK(full.include_usage);
  CHECK(full.generation.ignore_eos);
  CHECK(fault_of(R"({})").param == "prompt");
  CHECK(fault_of(R"({"prompt":[]})").param == "prompt");
  CHECK(fault_of(R"({"prompt":[[]]})").param == "prompt");
  CHECK(fault_of(R"({"prompt":["a","b"]})").code == errc::unsupported);
  CHECK(fault_of(R"({"prompt":[1,"a"]})").param == "prompt");
  CHECK(fault_of(R"({"prompt":[-1]})").param == "prompt");
  CHECK(fault_of(R"({"prompt":{}})").param == "prompt");
  CHECK(fault_of(R"({"prompt":"x","echo":true})").param == "echo");
  CHECK(fault_of(R"({"prompt":"x","n":2})").param == "n");
  CHECK(fault_of(R"({"prompt":"x","best_of":2})").param == "best_of");
}
