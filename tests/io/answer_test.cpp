#include <doctest/doctest.h>

#include "io/http/answer.hpp"
#include "io/wire/chat_answer.hpp"
#include "io/wire/completion.hpp"
#include "tests/support/json_text.hpp"

using namespace troupe;
using troupe::testing::json_at;
using troupe::testing::json_keys;
using troupe::testing::sse_data;
using troupe::testing::unchunked;

namespace {

const answer_identity identity{"chatcmpl-1", "m", 1'700'000'000};
const token_usage usage{20, 16, 5, 2};

struct http_text {
  std::string head, body;
  int status = 0;
};

http_text split(const std::string& bytes) {
  http_text out;
  const std::size_t end = bytes.find("\r\n\r\n");
  REQUIRE(end != std::string::npos);
  out.head = bytes.substr(0, end);
  out.body = bytes.substr(end + 4);
  out.status = std::stoi(out.head.substr(9, 3));
  return out;
}

bool has_header(const http_text& text, const std::string& line) {
  return text.head.find("\r\n" + line) != std::string::npos;
}

http_framing framing() {
  http_framing out;
  out.request_id = "req_7";
  return out;
}

std::string run(std::unique_ptr<body_encoder> encoder, const std::vector<generation_event>& events,
                http_framing with = framing()) {
  http_answer answer(std::move(encoder), std::move(with));
  std::string out;
  for (const generation_event& e : events)
    answer.consume(e, out);
  return out;
}

const std::vector<generation_event> thinking_answer = {
    generation_started{20, 16},
    reasoning_delta{"Hm"},
    text_delta{"Hel", {{"Hel", -0.25f, {{"Hel", -0.25f}, {"\xe2\x82", -2.f}}}}},
    text_delta{"lo \"€\"\n", {}},
    generation_finished{finish_reason::stop, usage},
};

} // namespace

TEST_CASE("a chat stream starts with the role, carries deltas, and ends with finish, usage and DONE") {
  const http_text http = split(run(make_chat_encoder(identity, {true, true}), thinking_answer));
  CHECK(http.status == 200);
  CHECK(has_header(http, "content-type: text/event-stream; charset=utf-8"));
  CHECK(has_header(http, "cache-control: no-cache"));
  CHECK(has_header(http, "x-accel-buffering: no"));
  CHECK(has_header(http, "transfer-encoding: chunked"));
  CHECK(has_header(http, "x-request-id: req_7"));
  CHECK(http.body.substr(http.body.size() - 5) == "0\r\n\r\n");
  const auto data = sse_data(unchunked(http.body));
  REQUIRE(data.size() == 7);
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(json_at(data[i], "/id") == "chatcmpl-1");
    CHECK(json_at(data[i], "/object") == "chat.completion.chunk");
    CHECK(json_at(data[i], "/created") == "1700000000");
    CHECK(json_at(data[i], "/model") == "m");
  }
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(json_at(data[i], "/choices/0/index") == "0");
    CHECK(json_at(data[i], "/usage") == "null");
    CHECK(json_at(data[i], "/choices/0/finish_reason") == (i == 4 ? "stop" : "null"));
  }
  CHECK(json_at(data[0], "/choices/0/delta") == R"({"role":"assistant","content":""})");
  CHECK(json_at(data[1], "/choices/0/delta") == R"({"reasoning_content":"Hm"})");
  CHECK(json_at(data[2], "/choices/0/delta") == R"({"content":"Hel"})");
  CHECK(json_at(data[2], "/choices/0/logprobs/content/0/token") == "Hel");
  CHECK(json_at(data[2], "/choices/0/logprobs/content/0/bytes") == "[72,101,108]");
  CHECK(json_at(data[2], "/choices/0/logprobs/content/0/logprob") == "-0.25");
  // Half a character: its bytes are exact, its text is a replacement.
  CHECK(json_at(data[2], "/choices/0/logprobs/content/0/top_logprobs/1/bytes") == "[226,130]");
  CHECK(json_at(data[2], "/choices/0/logprobs/content/0/top_logprobs/1/token") == "\xef\xbf\xbd\xef\xbf\xbd");
  CHECK(json_at(data[3], "/choices/0/delta/content") == "lo \"€\"\n");
  CHECK(json_at(data[3], "/choices/0/logprobs") == "null");
  CHECK(json_at(data[4], "/choices/0/delta") == "{}");
  CHECK(json_at(data[5], "/choices") == "[]");
  CHECK(json_at(data[5], "/usage/prompt_tokens") == "20");
  CHECK(json_at(data[5], "/usage/completion_tokens") == "5");
  CHECK(json_at(data[5], "/usage/total_tokens") == "25");
  CHECK(json_at(data[5], "/usage/prompt_tokens_details/cached_tokens") == "16");
  CHECK(json_at(data[5], "/usage/completion_tokens_details/reasoning_tokens") == "2");
  CHECK(data[5].find("dropped_tokens") == std::string::npos);
  CHECK(data[6] == "[DONE]");
}

TEST_CASE("usage tells what the context had no room for") {
  token_usage cut = usage;
  cut.dropped_tokens = 300;
  std::string text;
  json_writer w(text);
  write_usage(w, cut);
  CHECK(json_at(text, "/dropped_tokens") == "300");

  const std::vector<generation_event> events = {generation_started{}, text_delta{"x", {}}, generation_finished{finish_reason::stop, cut}};
  CHECK(json_at(split(run(make_chat_encoder(identity, {}), events)).body, "/usage/dropped_tokens") == "300");
  const auto data = sse_data(unchunked(split(run(make_chat_encoder(identity, {true, true}), events)).body));
  REQUIRE(data.size() >= 2);
  CHECK(json_at(data[data.size() - 2], "/usage/dropped_tokens") == "300");
}

TEST_CASE("of several choices the one that dropped most tells how much") {
  http_answer answer(make_chat_encoder(identity, {false, false, false, 2}), framing(), 2);
  std::string out;
  for (const int choice : {1, 0}) {
    token_usage cut = usage;
    cut.dropped_tokens = choice == 1 ? 48 : 32;
    answer.consume(generation_started{}, out, choice);
    answer.consume(generation_finished{finish_reason::stop, cut}, out, choice);
  }
  CHECK(json_at(split(out).body, "/usage/dropped_tokens") == "48");
}

TEST_CASE("a stream that did not ask for usage has none at all") {
  const auto data = sse_data(unchunked(split(run(make_chat_encoder(identity, {true, false}), thinking_answer)).body));
  REQUIRE(data.size() == 6);
  for (std::size_t i = 0; i < 5; ++i)
    CHECK(json_at(data[i], "/usage") == "<none>");
}

TEST_CASE("a plain chat answer is one document") {
  const http_text http = split(run(make_chat_encoder(identity, {false, false}), thinking_answer));
  CHECK(http.status == 200);
  CHECK(has_header(http, "content-type: application/json"));
  CHECK(has_header(http, "content-length: " + std::to_string(http.body.size())));
  CHECK(json_at(http.body, "/object") == "chat.completion");
  CHECK(json_at(http.body, "/choices/0/message/role") == "assistant");
  CHECK(json_at(http.body, "/choices/0/message/content") == "Hello \"€\"\n");
  CHECK(json_at(http.body, "/choices/0/message/reasoning_content") == "Hm");
  CHECK(json_at(http.body, "/choices/0/message/refusal") == "null");
  CHECK(json_at(http.body, "/choices/0/finish_reason") == "stop");
  CHECK(json_at(http.body, "/choices/0/logprobs/content/0/token") == "Hel");
  CHECK(json_at(http.body, "/usage/total_tokens") == "25");
}

TEST_CASE("an answer without reasoning has no reasoning field") {
  const http_text http =
      split(run(make_chat_encoder(identity, {false, false}),
                {generation_started{}, text_delta{"x", {}}, generation_finished{finish_reason::length, usage}}));
  CHECK(json_at(http.body, "/choices/0/message/reasoning_content") == "<none>");
  CHECK(json_at(http.body, "/choices/0/finish_reason") == "length");
}

TEST_CASE("tool calls stream as a named first delta and an arguments delta, and stand whole in a document") {
  const std::vector<generation_event> events = {generation_started{}, tool_call_made{{"call_1", "f", R"({"a":1})"}},
                                                tool_call_made{{"call_2", "g", "{}"}},
                                                generation_finished{finish_reason::tool_calls, usage}};
  const auto data = sse_data(unchunked(split(run(make_chat_encoder(identity, {true, false}), events)).body));
  REQUIRE(data.size() == 7);
  CHECK(json_at(data[1], "/choices/0/delta/tool_calls/0") ==
        R"({"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":""}})");
  CHECK(json_at(data[2], "/choices/0/delta/tool_calls/0") == R"({"index":0,"function":{"arguments":"{\"a\":1}"}})");
  CHECK(json_at(data[3], "/choices/0/delta/tool_calls/0/index") == "1");
  CHECK(json_at(data[5], "/choices/0/finish_reason") == "tool_calls");
  const http_text http = split(run(make_chat_encoder(identity, {false, false}), events));
  CHECK(json_at(http.body, "/choices/0/message/content") == "null");
  CHECK(json_at(http.body, "/choices/0/message/tool_calls/1/function/name") == "g");
  CHECK(json_at(http.body, "/choices/0/message/tool_calls/0/function/arguments") == R"({"a":1})");
}

TEST_CASE("a failure before the start keeps its status, in a stream too") {
  for (const bool stream : {false, true}) {
    const http_text http =
        split(run(make_chat_encoder(identity, {stream, false}), {generation_failed{{errc::context_full, "Too long."}, {}}}));
    CHECK(http.status == 400);
    CHECK(json_at(http.body, "/error/code") == "context_length_exceeded");
    CHECK(json_at(http.body, "/error/type") == "invalid_request_error");
    CHECK(json_at(http.body, "/error/message") == "Too long.");
    CHECK(json_at(http.body, "/error/param") == "null");
  }
}

TEST_CASE("a failure within a stream is an error object, and no DONE follows") {
  const std::string out =
      run(make_chat_encoder(identity, {true, true}),
          {generation_started{}, text_delta{"x", {}}, generation_failed{{errc::device_failed, "Gone."}, usage}});
  const auto data = sse_data(unchunked(split(out).body));
  REQUIRE(data.size() == 3);
  CHECK(json_at(data[2], "/error/message") == "Gone.");
  CHECK(json_at(data[2], "/error/code") == "device_failed");
  CHECK(out.find("[DONE]") == std::string::npos);
}

TEST_CASE("a failure within a plain answer has its status") {
  const http_text http =
      split(run(make_chat_encoder(identity, {false, false}),
                {generation_started{}, text_delta{"x", {}}, generation_failed{{errc::device_failed, "Gone."}, usage}}));
  CHECK(http.status == 500);
  CHECK(json_at(http.body, "/error/message") == "Gone.");
}

TEST_CASE("a cancelled answer is never mistaken for a whole one") {
  const std::vector<generation_event> events = {generation_started{}, text_delta{"x", {}},
                                                generation_finished{finish_reason::cancelled, usage}};
  const auto data = sse_data(unchunked(split(run(make_chat_encoder(identity, {true, false}), events)).body));
  CHECK(json_at(data.back(), "/error/code") == "cancelled");
  CHECK(split(run(make_chat_encoder(identity, {false, false}), events)).status == 499);
}

TEST_CASE("each event is written the moment it comes, and pings only between start and end") {
  http_answer answer(make_chat_encoder(identity, {true, false}), framing());
  std::string out;
  answer.ping(out);
  CHECK(out.empty());
  answer.consume(generation_started{}, out);
  CHECK(answer.streaming());
  CHECK(out.find("\"role\":\"assistant\"") != std::string::npos);
  out.clear();
  answer.ping(out);
  CHECK(out == "8\r\n: ping\n\n\r\n");
  out.clear();
  answer.consume(text_delta{"x", {}}, out);
  CHECK(!out.empty());
  answer.consume(generation_finished{finish_reason::stop, usage}, out);
  CHECK(answer.ended());
  out.clear();
  answer.ping(out);
  answer.consume(text_delta{"late", {}}, out);
  CHECK(out.empty());
}

TEST_CASE("choices stream side by side, each with its index, and the usage counts the prompt once") {
  http_answer answer(make_chat_encoder(identity, {true, true, false, 2}), framing(), 2);
  std::string out;
  token_usage other = usage;
  other.cached_tokens = 20;
  other.completion_tokens = 3;
  answer.consume(generation_started{}, out, 0);
  answer.consume(generation_started{}, out, 1);
  answer.consume(text_delta{"b", {}}, out, 1);
  answer.consume(tool_call_made{{"c", "f", "{}"}}, out, 1);
  answer.consume(text_delta{"a", {}}, out, 0);
  answer.consume(generation_finished{finish_reason::tool_calls, other}, out, 1);
  CHECK(!answer.ended());
  answer.consume(text_delta{"aa", {}}, out, 0);
  answer.consume(tool_call_made{{"d", "g", "{}"}}, out, 0);
  answer.consume(generation_finished{finish_reason::stop, usage}, out, 0);
  CHECK(answer.ended());
  const auto data = sse_data(unchunked(split(out).body));
  std::string texts[2], reasons[2], tools[2];
  REQUIRE(data.size() == 13);
  for (std::size_t i = 0; i < 11; ++i) {
    const auto choice = static_cast<std::size_t>(std::stoi(json_at(data[i], "/choices/0/index")));
    REQUIRE(choice < 2);
    if (const auto text = json_at(data[i], "/choices/0/delta/content"); text != "<none>")
      texts[choice] += text;
    if (const auto tool = json_at(data[i], "/choices/0/delta/tool_calls/0/index"); tool != "<none>")
      tools[choice] += tool;
    if (const auto reason = json_at(data[i], "/choices/0/finish_reason"); reason != "null")
      reasons[choice] += reason;
  }
  CHECK(texts[0] == "aaa");
  CHECK(texts[1] == "b");
  CHECK(tools[0] == "00");
  CHECK(tools[1] == "00");
  CHECK(reasons[0] == "stop");
  CHECK(reasons[1] == "tool_calls");
  CHECK(json_at(data[11], "/choices") == "[]");
  CHECK(json_at(data[11], "/usage/prompt_tokens") == "20");
  CHECK(json_at(data[11], "/usage/prompt_tokens_details/cached_tokens") == "16");
  CHECK(json_at(data[11], "/usage/completion_tokens") == "8");
  CHECK(json_at(data[11], "/usage/total_tokens") == "28");
  CHECK(data[12] == "[DONE]");
}

TEST_CASE("choices of a document stand in their order, whichever ended first") {
  http_answer answer(make_chat_encoder(identity, {false, false, false, 3}), framing(), 3);
  std::string out;
  for (const int choice : {2, 0, 1}) {
    CHECK(out.empty());
    answer.consume(generation_started{}, out, choice);
    answer.consume(text_delta{std::string(1, static_cast<char>('a' + choice)), {}}, out, choice);
    answer.consume(generation_finished{choice == 1 ? finish_reason::length : finish_reason::stop, usage}, out, choice);
  }
  const http_text http = split(out);
  for (int i = 0; i < 3; ++i) {
    const std::string at = "/choices/" + std::to_string(i);
    CHECK(json_at(http.body, at + "/index") == std::to_string(i));
    CHECK(json_at(http.body, at + "/message/content") == std::string(1, static_cast<char>('a' + i)));
    CHECK(json_at(http.body, at + "/finish_reason") == (i == 1 ? "length" : "stop"));
  }
  CHECK(json_at(http.body, "/usage/prompt_tokens") == "20");
  CHECK(json_at(http.body, "/usage/completion_tokens") == "15");
}

TEST_CASE("one choice that fails or is cancelled ends the answer of all") {
  for (const bool stream : {true, false})
    for (const bool failed : {true, false}) {
      http_answer answer(make_chat_encoder(identity, {stream, true, false, 2}), framing(), 2);
      std::string out;
      answer.consume(generation_started{}, out, 0);
      answer.consume(generation_finished{finish_reason::stop, usage}, out, 0);
      if (failed)
        answer.consume(generation_failed{{errc::device_failed, "Gone."}, usage}, out, 1);
      else
        answer.consume(generation_finished{finish_reason::cancelled, usage}, out, 1);
      CHECK(answer.ended());
      CHECK(out.find("[DONE]") == std::string::npos);
      CHECK(out.find(failed ? "device_failed" : "cancelled") != std::string::npos);
      CHECK(split(out).status == (stream ? 200 : failed ? 500 : 499));
    }
}

TEST_CASE("HTTP/1.0 gets no chunks and HEAD no body") {
  http_framing old = framing();
  old.version = 10;
  old.keep_alive = false;
  const http_text http = split(run(make_chat_encoder(identity, {true, false}), thinking_answer, old));
  CHECK(http.head.substr(0, 12) == "HTTP/1.0 200");
  CHECK(!has_header(http, "transfer-encoding"));
  CHECK(has_header(http, "connection: close"));
  CHECK(sse_data(http.body).back() == "[DONE]");
  http_framing head = framing();
  head.head_only = true;
  std::string out;
  append_response(out, json_response("{}"), head);
  CHECK(split(out).body.empty());
  CHECK(has_header(split(out), "content-length: 2"));
}

TEST_CASE("a completion's stream and document have their own shape") {
  const std::vector<generation_event> events = {generation_started{}, text_delta{"Once", {{"Once", -1.f, {{"Once", -1.f}}}}},
                                                text_delta{" upon", {{" upon", -2.f, {}}}},
                                                generation_finished{finish_reason::length, usage}};
  const auto data = sse_data(unchunked(split(run(make_completion_encoder(identity, {true, true}), events)).body));
  REQUIRE(data.size() == 5);
  CHECK(json_at(data[0], "/object") == "text_completion");
  CHECK(json_at(data[0], "/choices/0/text") == "Once");
  CHECK(json_at(data[0], "/choices/0/logprobs/tokens") == R"(["Once"])");
  CHECK(json_at(data[0], "/choices/0/logprobs/top_logprobs/0/Once") == "-1");
  CHECK(json_at(data[1], "/choices/0/logprobs/text_offset") == "[4]");
  CHECK(json_at(data[2], "/choices/0/finish_reason") == "length");
  CHECK(json_at(data[2], "/usage") == "null");
  CHECK(json_at(data[3], "/choices") == "[]");
  CHECK(json_at(data[3], "/usage/prompt_tokens") == "20");
  CHECK(data[4] == "[DONE]");
  const http_text http = split(run(make_completion_encoder(identity, {false, false}), events));
  CHECK(json_at(http.body, "/choices/0/text") == "Once upon");
  CHECK(json_at(http.body, "/choices/0/logprobs/text_offset") == "[0,4]");
  CHECK(json_at(http.body, "/usage/completion_tokens") == "5");
}

TEST_CASE("a header value can't break out of its line") {
  http_response response = json_response("{}");
  response.headers.emplace_back("x-test", "a\r\nset-cookie: b");
  std::string out;
  append_response(out, response, framing());
  CHECK(out.find("\r\nset-cookie") == std::string::npos);
}

TEST_CASE("queries and escapes are read") {
  http_request request;
  request.target = "/v1/x?a=1&stream=true&b";
  CHECK(request.path() == "/v1/x");
  CHECK(request.query("stream") == "true");
  CHECK(request.query("a") == "1");
  CHECK(request.query("b").empty());
  CHECK(request.query("str").empty());
  CHECK(decode_percent("a%2Fb%zz%4") == "a/b%zz%4");
}
