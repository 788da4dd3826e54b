// A worker's prompts are the same with a token history and without one, whatever was asked before.
#include <doctest/doctest.h>

#include <random>

#include "actors/worker/prompt_preparer.hpp"
#include "tests/support/chat_maker.hpp"
#include "tests/support/small_tokenizer.hpp"
#include "tests/support/test_seeds.hpp"
#include "tests/support/tokenizer_json.hpp"

using namespace troupe;

namespace {

constexpr template_kind all_kinds[] = {template_kind::qwen3,          template_kind::chatml,        template_kind::qwen2_5,
                                       template_kind::llama3,         template_kind::smollm2,       template_kind::qwen2,
                                       template_kind::qwen3_instruct, template_kind::qwen3_thinking};

std::shared_ptr<runtime_context> context_of(template_kind kind, std::shared_ptr<const tokenizer> tokens, std::size_t history) {
  auto out = std::make_shared<runtime_context>();
  out->chat = chat_template::create(kind, tokens).value();
  out->tokens = std::move(tokens);
  out->metrics = std::make_shared<metrics_registry>();
  if (history > 0)
    out->history.emplace(history_choice{history, hash_key([random = std::mt19937_64(7)]() mutable { return random(); })});
  return out;
}

generation_request asking(std::vector<chat_message> messages) {
  generation_request out;
  out.messages = std::move(messages);
  return out;
}

// Clients that go on, edit, switch tools, tenants and thinking, and come back to what they had said before.
class clients {
public:
  clients(testing::chat_maker& maker, bool tools) : maker_(maker), tools_(tools), chats_(6) {}

  const generation_request& next() {
    auto& chat = chats_[maker_.below(chats_.size())];
    if (chat.messages.empty() || chat.messages.size() > 60 || maker_.chance(3)) {
      chat = asking(maker_.opening());
      chat.tools = tools_ && maker_.chance(50) ? maker_.tools() : std::vector<std::string>();
      chat.tenant = maker_.chance(50) ? "a" : "b";
      return chat;
    }
    if (maker_.chance(70))
      maker_.go_on(chat.messages, tools_);
    if (maker_.chance(15))
      maker_.edit(chat.messages);
    if (maker_.chance(5))
      chat = chats_[maker_.below(chats_.size())];
    if (maker_.chance(5))
      chat.tenant = chat.tenant == "a" ? "b" : "a";
    if (maker_.chance(5))
      chat.tools = tools_ || maker_.chance(10) ? maker_.tools() : std::vector<std::string>();
    if (maker_.chance(2))
      chat.tools.push_back("{not json");
    if (maker_.chance(20))
      chat.enable_thinking = maker_.chance(50);
    return chat;
  }

private:
  testing::chat_maker& maker_;
  const bool tools_;
  std::vector<generation_request> chats_;
};

struct totals {
  std::uint64_t hits = 0, misses = 0, forgotten = 0;
};

struct scene {
  std::shared_ptr<const tokenizer> tokens = testing::small_tokenizer();
  std::size_t history_bytes = 1u << 20;
  int prompts = 600;
};

totals check_same(template_kind kind, std::uint64_t seed, const scene& s) {
  CAPTURE(seed);
  CAPTURE(std::string(name_of(kind)));
  testing::chat_maker maker(seed);
  const auto on = context_of(kind, s.tokens, s.history_bytes);
  prompt_preparer with(on), without(context_of(kind, s.tokens, 0));
  clients all(maker, on->chat->takes_tools());
  for (int i = 0; i < s.prompts; ++i) {
    const auto& request = all.next();
    const auto got = with.prepare(request), expected = without.prepare(request);
    with.check_invariants();
    REQUIRE(got.fault.has_value() == expected.fault.has_value());
    if (got.fault) {
      REQUIRE(got.fault->code == expected.fault->code);
      REQUIRE(got.fault->message == expected.fault->message);
    }
    REQUIRE(got.tokens == expected.tokens);
    REQUIRE(got.thinking_open == expected.thinking_open);
  }
  CHECK(static_cast<std::size_t>(on->metrics->history_bytes.load()) <= s.history_bytes);
  return {on->metrics->history_hits, on->metrics->history_misses, on->metrics->history_forgotten};
}

} // namespace

TEST_CASE("with a token history every prompt has the tokens, or the fault, that it has without one") {
  for (const auto seed : testing::test_seeds(3))
    for (const auto kind : all_kinds) {
      const auto t = check_same(kind, seed, {});
      CHECK(t.hits > 2 * t.misses);
    }
}

TEST_CASE("so it has at the history's bound, where conversations are forgotten all the time") {
  scene s;
  s.history_bytes = 16u << 10;
  for (const auto seed : testing::test_seeds(3))
    for (const auto kind : all_kinds) {
      const auto t = check_same(kind, seed, s);
      CHECK(t.hits > 40);
      CHECK(t.forgotten > 40);
    }
}

TEST_CASE("so it has with real vocabularies") {
  for (const auto& tokens : {testing::qwen3_tokenizer(), testing::tiny_tokenizer()})
    if (tokens != nullptr)
      for (const auto kind : {template_kind::qwen3, template_kind::qwen2_5, template_kind::smollm2})
        for (const auto seed : testing::test_seeds(1))
          CHECK(check_same(kind, seed, {tokens, 1u << 20, 400}).hits > 100);
}

TEST_CASE("only a turn's own text is rendered: the metrics tell what was taken over, and of whom") {
  const auto context = context_of(template_kind::qwen3, testing::small_tokenizer(), 1u << 20);
  auto& metrics = *context->metrics;
  prompt_preparer preparer(context);
  auto request = asking({{"user", std::string(1000, 'x'), {}, {}, {}}});
  const auto first = preparer.prepare(request);
  CHECK(metrics.history_misses == 1);
  CHECK(metrics.history_messages == 1);
  request.messages.push_back({"assistant", "y", {}, {}, {}});
  request.messages.push_back({"user", "z", {}, {}, {}});
  CHECK(preparer.prepare(request).tokens.size() > first.tokens.size());
  CHECK(metrics.history_hits == 1);
  CHECK(metrics.history_tokens > 1000);
  CHECK(metrics.history_tokens < first.tokens.size());
  CHECK(metrics.history_messages == 3);
  CHECK(metrics.history_conversations == 1);
  CHECK(metrics.history_bytes > 4000);
  request.enable_thinking = false; // stands behind the messages: the same beginning
  preparer.prepare(request);
  CHECK(metrics.history_hits == 2);
  request.tenant = "another";
  preparer.prepare(request);
  CHECK(metrics.history_misses == 2);
  CHECK(metrics.render(0).find("troupe_history_hits_total 2\n") != std::string::npos);
}

TEST_CASE("a preparer that ends takes its share out of the gauges, and the next one starts empty") {
  const auto context = context_of(template_kind::qwen3, testing::small_tokenizer(), 1u << 20);
  const auto request = asking({{"user", "hello", {}, {}, {}}});
  prompt_preparer other(context);
  other.prepare(request);
  const auto bytes = context->metrics->history_bytes.load();
  for (int i = 0; i < 2; ++i) {
    prompt_preparer preparer(context);
    preparer.prepare(request);
    CHECK(context->metrics->history_bytes == 2 * bytes);
  }
  CHECK(context->metrics->history_bytes == bytes);
  CHECK(context->metrics->history_conversations == 1);
  CHECK(context->metrics->history_misses == 3);
  CHECK(context->metrics->history_forgotten == 0);
}

TEST_CASE("prompts that are no chats leave the history alone") {
  const auto context = context_of(template_kind::qwen3, testing::small_tokenizer(), 1u << 20);
  prompt_preparer preparer(context);
  generation_request request;
  request.prompt = "text";
  CHECK(preparer.prepare(request).tokens.size() == 4);
  request.prompt.reset();
  request.prompt_tokens = {1, 2, 3};
  CHECK(preparer.prepare(request).tokens == request.prompt_tokens);
  request.prompt_tokens = {-1};
  CHECK(preparer.prepare(request).fault->code == errc::invalid_argument);
  CHECK(context->metrics->history_misses == 0);
  CHECK(context->metrics->history_bytes == 0);
}
