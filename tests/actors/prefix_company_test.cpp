// Prefix reuse as a client meets it: warm-ups, regenerated answers, turns of a chat, and what /metrics says of it.
#include <doctest/doctest.h>

#include "tests/actors/fixture.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

chat_message said(std::string role, std::string text) { return {std::move(role), std::move(text), {}, {}, {}}; }

generation_request turn(std::vector<chat_message> messages, int max_tokens = 8) {
  generation_request r;
  r.messages = std::move(messages);
  r.max_tokens = max_tokens;
  r.sampling.seed = 7;
  return r;
}

company_options roomy() {
  company_options o;
  o.context_tokens = 2048;
  o.device->pages = 512;
  o.device->step_tokens_max = 256;
  o.step_tokens = 256;
  o.shards = 1; // of several, a chat that knows little begins where most is free
  return o;
}

int length_of(const company_fixture& house, const generation_request& r) {
  return static_cast<int>(house.context->chat->render(r.messages, {}).value().tokens.size());
}

// How many tokens two prompts begin with in common.
int common(const company_fixture& house, const generation_request& a, const generation_request& b) {
  const auto x = house.context->chat->render(a.messages, {}).value().tokens;
  const auto y = house.context->chat->render(b.messages, {}).value().tokens;
  return static_cast<int>(std::mismatch(x.begin(), x.end(), y.begin(), y.end()).first - x.begin());
}

bool has_line(company_fixture& house, const std::string& line) {
  return house.port->metrics_text().find(line + "\n") != std::string::npos;
}

} // namespace

TEST_CASE("a warm-up answers with usage and nothing else, and the next request finds all that agrees, to the token") {
  company_fixture house(roomy());
  const auto system = said("system", "You are the assistant of a small shop that sells tea, pots and cups.");
  const auto warm_request = turn({system}, 0);
  const auto warm = house.ask(warm_request);
  house.run();
  REQUIRE(warm->finished());
  CHECK(warm->text().empty());
  CHECK(warm->finished()->reason == finish_reason::length);
  CHECK(warm->finished()->usage.prompt_tokens == length_of(house, warm_request));
  CHECK(warm->finished()->usage.completion_tokens == 0);
  const auto first = turn({system, said("user", "Which pots are there?")});
  const auto sink = house.ask(first);
  house.run();
  CHECK(sink->finished()->usage.cached_tokens == common(house, warm_request, first));
  CHECK(sink->finished()->usage.cached_tokens % limits::page_tokens != 0); // else this shows nothing
  CHECK(house.all_pages_back());
}

TEST_CASE("a regenerated answer starts with no forward pass and is the same for the same seed") {
  company_fixture house(roomy());
  const auto request = turn({said("user", "Tell me of tea.")}, 12);
  const auto first = house.ask(request);
  house.run();
  const int computed = house.device->tokens;
  const auto again = house.ask(request);
  house.run();
  CHECK(again->text() + again->reasoning() == first->text() + first->reasoning());
  CHECK(again->finished()->usage.cached_tokens == length_of(house, request));
  CHECK(house.device->resumed == 1);
  CHECK(house.device->tokens - computed == 11); // decodes alone
  auto other = request;
  other.sampling.seed = 8;
  const auto regenerated = house.ask(other);
  house.run();
  CHECK(house.device->resumed == 2);
  CHECK(regenerated->text() + regenerated->reasoning() != first->text() + first->reasoning());
  CHECK(has_line(house, "troupe_prompt_state_hits_total 2"));
  CHECK(has_line(house, "troupe_prompt_states 1"));
}

TEST_CASE("with states switched off a regenerated answer is the same and computes one prompt token") {
  auto options = roomy();
  options.prefix.prompt_states = 0;
  company_fixture house(options);
  const auto request = turn({said("user", "Tell me of tea.")}, 12);
  const auto first = house.ask(request);
  house.run();
  const int computed = house.device->tokens;
  const auto again = house.ask(request);
  house.run();
  CHECK(again->text() + again->reasoning() == first->text() + first->reasoning());
  CHECK(house.device->tokens - computed == 12);
  CHECK(house.device->resumed == 0);
}

TEST_CASE("the next turn of a thinking model reuses everything up to its last answer, whose think block is gone") {
  company_fixture house(roomy());
  const auto first = turn({said("system", "You are helpful."), said("user", "How much is the red pot?")}, 20);
  house.ask(first);
  house.run();
  chat_message answer = said("assistant", "Twelve.");
  answer.reasoning = "The list says twelve.";
  const auto second = turn({first.messages[0], first.messages[1], answer, said("user", "And the blue one?")});
  const auto sink = house.ask(second);
  house.run();
  // The last stable token: "<|im_start|>assistant\n" of the first turn, where its prompt ended.
  CHECK(sink->finished()->usage.cached_tokens == length_of(house, first));
  CHECK(common(house, first, second) == length_of(house, first));
}

TEST_CASE("a tool's result continues behind the generated tokens, think block and all") {
  company_options options = roomy();
  const std::string generated = "\nI look.\n";
  std::vector<token_id> script{added::think_open};
  for (const char c : generated)
    script.push_back(static_cast<unsigned char>(c));
  script.push_back(added::think_close);
  for (const char c : std::string("\n\nWait."))
    script.push_back(static_cast<unsigned char>(c));
  options.device->choose = [script](const std::vector<token_id>& so_far, const sampling_params&) {
    std::size_t written = 0; // of the script, at the end
    for (std::size_t n = std::min(script.size(), so_far.size()); n > 0 && written == 0; --n)
      if (std::equal(script.begin(), script.begin() + static_cast<std::ptrdiff_t>(n), so_far.end() - static_cast<std::ptrdiff_t>(n)))
        written = n;
    return written < script.size() ? script[written] : static_cast<token_id>(added::im_end);
  };
  company_fixture house(options);
  const auto first = turn({said("user", "What is in the box?")}, 100);
  const auto sink = house.ask(first);
  house.run();
  REQUIRE(sink->finished());
  CHECK(sink->reasoning() == "I look.");
  CHECK(sink->text() == "Wait.");
  chat_message answer = said("assistant", sink->text());
  answer.reasoning = sink->reasoning();
  chat_message result = said("tool", "A cup.");
  const auto second = turn({first.messages[0], answer, result});
  const auto next = house.ask(second);
  house.run();
  // All but the end token, which was chosen but never computed.
  CHECK(next->finished()->usage.cached_tokens == length_of(house, first) + static_cast<int>(script.size()));
}

TEST_CASE("a pinned prompt is told in metrics, and one beyond the share is counted") {
  auto options = roomy();
  options.prefix.pinned_percent = 10; // of 256 pages a shard: 25
  company_fixture house(options);
  auto warm = turn({said("system", std::string(100, 's'))}, 0);
  warm.pin_prompt = true;
  house.ask(warm);
  house.run();
  const auto pages = (length_of(house, warm) + limits::page_tokens - 1) / limits::page_tokens;
  CHECK(has_line(house, "troupe_kv_pages_pinned " + std::to_string(pages)));
  auto large = turn({said("system", std::string(1000, 'l'))}, 0);
  large.pin_prompt = true;
  house.ask(large);
  house.run();
  CHECK(has_line(house, "troupe_prefix_pins_refused_total 1"));
  CHECK(has_line(house, "troupe_kv_pages_pinned " + std::to_string(pages)));
}

TEST_CASE("what nobody uses expires by the clock that is passed in") {
  auto options = roomy();
  options.prefix.time_to_live = std::chrono::seconds(60);
  company_fixture house(options);
  house.ask(std::string(64, 'x'), 2);
  house.run();
  house.advance(std::chrono::seconds(61));
  const auto sink = house.ask(std::string(64, 'x'), 2);
  house.run();
  CHECK(sink->finished()->usage.cached_tokens == 0);
  CHECK_FALSE(has_line(house, "troupe_prefix_pages_evicted_total{reason=\"age\"} 0"));
}

TEST_CASE("metrics tell lookups, hits, copies and how contiguous pages are") {
  company_fixture house(roomy());
  house.ask(std::string(70, 'x'), 2);
  house.run();
  house.ask(std::string(69, 'x') + "yz", 2);
  house.run();
  for (const auto* line : {"troupe_prefix_lookups_total 2", "troupe_prefix_hits_total 1", "troupe_prefix_copied_tokens_total 5"})
    CHECK_MESSAGE(has_line(house, line), line);
  CHECK(house.port->metrics_text().find("troupe_kv_contiguous_share 0.") != std::string::npos);
}
