#include <doctest/doctest.h>

#include "actors/session/answer_stream.hpp"
#include "base/random.hpp"
#include "tests/support/byte_tokenizer.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

struct seen {
  std::string text;
  std::string reasoning;
  std::vector<tool_call> calls;
  std::vector<std::vector<std::string>> logprobs; // a delta
  std::vector<std::string> deltas;
  bool stopped = false;
  int reasoning_tokens = 0;
};

std::vector<token_id> bytes(std::string_view text) {
  std::vector<token_id> out;
  for (const char c : text)
    out.push_back(static_cast<unsigned char>(c));
  return out;
}

std::vector<token_id> join(std::initializer_list<std::vector<token_id>> parts) {
  std::vector<token_id> out;
  for (const auto& p : parts)
    out.insert(out.end(), p.begin(), p.end());
  return out;
}

answer_rules rules_with_marks() {
  answer_rules rules;
  rules.marks = find_answer_tokens(*byte_tokenizer());
  return rules;
}

seen run(const std::vector<token_id>& tokens, answer_rules rules) {
  const auto names = byte_tokenizer();
  answer_stream stream(*names, std::move(rules));
  seen out;
  std::vector<generation_event> events;
  for (const auto token : tokens) {
    sampled_token sampled;
    sampled.token = token;
    if (!stream.push(sampled, events)) {
      out.stopped = true;
      break;
    }
  }
  if (!out.stopped)
    stream.finish(events);
  for (const auto& event : events) {
    if (const auto* d = std::get_if<text_delta>(&event)) {
      out.text += d->text;
      out.deltas.push_back(d->text);
      std::vector<std::string> names_of;
      for (const auto& l : d->logprobs)
        names_of.push_back(l.token);
      out.logprobs.push_back(names_of);
    }
    if (const auto* d = std::get_if<reasoning_delta>(&event))
      out.reasoning += d->text;
    if (const auto* d = std::get_if<tool_call_made>(&event))
      out.calls.push_back(d->call);
  }
  out.reasoning_tokens = stream.reasoning_tokens();
  return out;
}

} // namespace

TEST_CASE("text comes as whole UTF-8 characters, a token a delta where it can") {
  const auto got = run(bytes("a\u00e9\u4f60b"), rules_with_marks());
  CHECK(got.text == "a\u00e9\u4f60b");
  CHECK(got.deltas == std::vector<std::string>{"a", "\u00e9", "\u4f60", "b"});
}

TEST_CASE("an answer that ends inside a character shows the replacement character") {
  CHECK(run({'a', 0xe4, 0xbd}, rules_with_marks()).text == "a\uFFFD");
}

TEST_CASE("a stop string is never shown, not even in part, and ends the answer") {
  auto rules = rules_with_marks();
  rules.stops = {"END"};
  auto got = run(bytes("one two END three"), rules);
  CHECK(got.stopped);
  CHECK(got.text == "one two ");
  got = run(bytes("the EN"), rules);
  CHECK_FALSE(got.stopped);
  CHECK(got.text == "the EN");
  got = run(bytes("EEND"), rules);
  CHECK(got.text == "E");
}

TEST_CASE("of two stop strings the one that completes first counts") {
  auto rules = rules_with_marks();
  rules.stops = {"abcd", "bc"};
  CHECK(run(bytes("xabcd"), rules).text == "xa");
  rules.stops = {"\n\n", "\nUser:"};
  CHECK(run(bytes("hi\nUser: no"), rules).text == "hi");
  CHECK(run(bytes("hi\n\nno"), rules).text == "hi");
  CHECK(run(bytes("hi\nUse"), rules).text == "hi\nUse");
}

TEST_CASE("stop strings are found however the text is cut, as in the whole text") {
  const std::uint64_t seed = 20240711;
  INFO("seed " << seed);
  std::uint64_t counter = 0;
  const auto draw = [&](std::uint64_t n) { return random_at(seed, counter++) % n; };
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> stops;
    for (std::uint64_t i = 0, n = 1 + draw(3); i < n; ++i) {
      std::string stop;
      for (std::uint64_t k = 0, m = 1 + draw(4); k < m; ++k)
        stop.push_back(static_cast<char>('a' + draw(2)));
      stops.push_back(stop);
    }
    std::string text;
    for (std::uint64_t k = 0, m = draw(24); k < m; ++k)
      text.push_back(static_cast<char>('a' + draw(2)));

    // The plain definition: the first end of any match; of those that end there, the longest.
    auto want = text;
    for (std::size_t end = 1; end <= text.size() && want == text; ++end)
      for (const auto& stop : stops)
        if (end >= stop.size() && text.compare(end - stop.size(), stop.size(), stop) == 0)
          want = std::min(want, text.substr(0, end - stop.size()), [](auto& a, auto& b) { return a.size() < b.size(); });

    stop_matcher matcher(stops);
    std::string got;
    bool stopped = false;
    for (std::size_t at = 0; at < text.size() && !stopped;) {
      const auto n = 1 + draw(5);
      auto out = matcher.push(std::string_view(text).substr(at, n));
      got += out.text;
      stopped = out.stopped;
      at += n;
    }
    if (!stopped)
      got += matcher.finish();
    REQUIRE_MESSAGE(got == want, "text " << text << ", first stop " << stops.front());
  }
}

TEST_CASE("a think block is split from the answer, without the newlines between them") {
  auto rules = rules_with_marks();
  rules.split_thinking = true;
  const auto answer = join({{added::think_open}, bytes("\nhm,\n\nyes\n"), {added::think_close}, bytes("\n\nHello.\n")});
  auto got = run(answer, rules);
  CHECK(got.reasoning == "hm,\n\nyes");
  CHECK(got.text == "Hello.\n");
  CHECK(got.reasoning_tokens == 12);

  rules.thinking_open = true;
  got = run(join({bytes("hm"), {added::think_close}, bytes("\n\nHi")}), rules);
  CHECK(got.reasoning == "hm");
  CHECK(got.text == "Hi");
  CHECK(got.reasoning_tokens == 3);

  rules.split_thinking = false;
  rules.thinking_open = false;
  CHECK(run(join({{added::think_open}, bytes("x"), {added::think_close}}), rules).text == "<think>x</think>");
}

TEST_CASE("stop strings don't apply to reasoning") {
  auto rules = rules_with_marks();
  rules.split_thinking = true;
  rules.stops = {"stop"};
  const auto got = run(join({{added::think_open}, bytes("stop"), {added::think_close}, bytes("a stop b")}), rules);
  CHECK(got.reasoning == "stop");
  CHECK(got.text == "a ");
}

TEST_CASE("tool calls come whole, with their arguments as written, and nothing of them as text") {
  auto rules = rules_with_marks();
  rules.collect_tool_calls = true;
  const auto call = [](std::string_view json) { return join({{added::tool_open}, bytes(json), {added::tool_close}}); };
  const auto got =
      run(join({bytes("Let me look.\n"), call("\n{\"name\": \"get_order\", \"arguments\": {\"id\": \"7\",\"n\":1.50}}\n"),
                bytes("\n"), call("{\"arguments\":{},\"name\":\"b\"}"), bytes("\n")}),
          rules);
  REQUIRE(got.calls.size() == 2);
  CHECK(got.calls[0].name == "get_order");
  CHECK(got.calls[0].arguments == "{\"id\": \"7\",\"n\":1.50}");
  CHECK(got.calls[1].name == "b");
  CHECK(got.calls[0].id != got.calls[1].id);
  CHECK(got.calls[0].id.substr(0, 5) == "call_");
  CHECK(got.text == "Let me look.");
}

TEST_CASE("what fails to be a tool call comes as text") {
  auto rules = rules_with_marks();
  rules.collect_tool_calls = true;
  const auto broken = join({{added::tool_open}, bytes("{\"name\": oops}"), {added::tool_close}, bytes("!")});
  CHECK(run(broken, rules).text == "<tool_call>{\"name\": oops}</tool_call>!");
  CHECK(run(join({bytes("a"), {added::tool_open}, bytes("{\"na")}), rules).text == "a<tool_call>{\"na");
  rules.collect_tool_calls = false;
  const auto valid = join({{added::tool_open}, bytes("{\"name\":\"f\"}"), {added::tool_close}});
  CHECK(run(valid, rules).text == "<tool_call>{\"name\":\"f\"}</tool_call>");
  CHECK(run(valid, rules).calls.empty());
}

TEST_CASE("each token's log-probability comes with the delta that carries its last character") {
  auto rules = rules_with_marks();
  rules.logprobs = true;
  auto got = run(bytes("a\u00e9b"), rules);
  CHECK(got.logprobs == std::vector<std::vector<std::string>>{{"a"}, {"\xc3", "\xa9"}, {"b"}});

  rules.stops = {"xy"};
  got = run(bytes("axxy!"), rules);
  CHECK(got.text == "ax");
  CHECK(got.logprobs == std::vector<std::vector<std::string>>{{"a"}, {"x"}});
  got = run(bytes("ax"), rules);
  CHECK(got.logprobs == std::vector<std::vector<std::string>>{{"a"}, {"x"}});
}

TEST_CASE("control tokens are no text") {
  CHECK(run({'a', added::im_end, 'b'}, rules_with_marks()).text == "ab");
}
