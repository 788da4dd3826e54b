// A rendering that is taken up again after any message gives the tokens of one from the start.
#include <doctest/doctest.h>

#include "model/chat_template.hpp"
#include "tests/support/chat_maker.hpp"
#include "tests/support/small_tokenizer.hpp"
#include "tests/support/test_seeds.hpp"
#include "tests/support/tokenizer_json.hpp"

using namespace troupe;

namespace {

constexpr template_kind all_kinds[] = {template_kind::qwen3,          template_kind::chatml,        template_kind::qwen2_5,
                                       template_kind::llama3,         template_kind::smollm2,       template_kind::qwen2,
                                       template_kind::qwen3_instruct, template_kind::qwen3_thinking};

// Takes up `messages` at every place that rendering a shorter beginning of them offered and whose forms are the same.
void check_every_place(const chat_template& t, const std::vector<chat_message>& messages, const render_options& options,
                       std::size_t& places) {
  const auto whole = t.render(messages, options);
  REQUIRE(whole.has_value());
  const auto forms = t.forms_of(messages);
  for (std::size_t n = 1; n <= messages.size(); ++n) {
    const std::vector<chat_message> shorter(messages.begin(), messages.begin() + static_cast<std::ptrdiff_t>(n));
    const auto before = t.render(shorter, {options.tools, true, !options.enable_thinking.value_or(true)});
    REQUIRE(before.has_value());
    const auto forms_before = t.forms_of(shorter);
    for (const auto& end : before->ends) {
      const auto count = static_cast<std::ptrdiff_t>(end.messages);
      if (!std::equal(forms_before.begin(), forms_before.begin() + count, forms.begin()))
        continue;
      ++places;
      const auto tokens = before->tokens.begin();
      render_start start{end, {tokens, tokens + static_cast<std::ptrdiff_t>(end.tokens)}};
      const auto resumed = t.render(messages, options, std::move(start));
      REQUIRE(resumed.has_value());
      REQUIRE(resumed->tokens == whole->tokens);
      REQUIRE(resumed->thinking_open == whole->thinking_open);
      REQUIRE(whole->text.ends_with(resumed->text));
    }
  }
}

// Without the added tokens that only some models have: their names are then text, in long runs.
std::shared_ptr<const tokenizer> bare_tokenizer() {
  auto data = testing::byte_data({{"\n", "\n"}, {">", "\n"}, {"t", "h"}, {"\n", "<"}});
  for (const char* name :
       {"<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|im_start|>", "<|im_end|>"})
    testing::add_token(data, name, token_kind::control);
  return tokenizer::build(std::move(data)).value();
}

void check_tokenizer(std::shared_ptr<const tokenizer> tokens, std::uint64_t seed, int chats) {
  CAPTURE(seed);
  for (const auto kind : all_kinds) {
    CAPTURE(std::string(name_of(kind)));
    const auto made = chat_template::create(kind, tokens);
    if (!made && kind == template_kind::llama3)
      continue; // a vocabulary of another family
    REQUIRE(made.has_value());
    testing::chat_maker maker(seed);
    std::size_t places = 0;
    for (int i = 0; i < chats; ++i) {
      const bool tools = made->takes_tools() && maker.chance(60);
      render_options options;
      options.tools = tools ? maker.tools() : std::vector<std::string>();
      options.add_generation_prompt = maker.chance(90);
      if (maker.chance(50))
        options.enable_thinking = maker.chance(50);
      auto chat = maker.opening();
      for (std::size_t turns = maker.below(4); turns > 0; --turns)
        maker.go_on(chat, tools);
      check_every_place(*made, chat, options, places);
    }
    CHECK(places > static_cast<std::size_t>(chats));
  }
}

} // namespace

TEST_CASE("rendering taken up at any place equals rendering from the start") {
  for (const auto seed : testing::test_seeds(4))
    check_tokenizer(testing::small_tokenizer(), seed, 20);
}

TEST_CASE("so it does where think and tool tags are no tokens of their own") {
  for (const auto seed : testing::test_seeds(4))
    check_tokenizer(bare_tokenizer(), seed, 20);
}

TEST_CASE("so it does with real vocabularies") {
  for (const auto& tokens : {testing::qwen3_tokenizer(), testing::tiny_tokenizer()})
    if (tokens != nullptr)
      for (const auto seed : testing::test_seeds(2))
        check_tokenizer(tokens, seed, 10);
}

TEST_CASE("a conversation that goes on is taken up at the last message that stays as it was") {
  const auto t = chat_template::create(template_kind::qwen3, testing::small_tokenizer()).value();
  chat_message answer{"assistant", "b", "why", {}, {}};
  const chat_message user{"user", "a", {}, {}, {}}, result{"tool", "c", {}, {}, {}};
  // While the query is the last one its answers keep their thoughts; the next query takes them away.
  CHECK(t.forms_of({user, answer, result}) == std::vector{message_form::plain, message_form::thinking, message_form::plain});
  CHECK(t.forms_of({user, answer, result, result, answer, user}) == std::vector{message_form::plain, message_form::plain,
                                                                                message_form::joined, message_form::plain,
                                                                                message_form::plain, message_form::plain});
  answer.reasoning.clear();
  CHECK(t.forms_of({user, answer, result}) == std::vector{message_form::plain, message_form::plain, message_form::plain});
  CHECK(t.forms_of({user, answer}) == std::vector{message_form::plain, message_form::thinking});
  CHECK(t.forms_of({}).empty());
}

TEST_CASE("a place holds the template's words alone, however long the bodies are") {
  const std::string body(5000, 'x');
  const chat_message result{"tool", body, {}, {}, {}};
  const std::vector<chat_message> messages{{"user", body, {}, {}, {}}, result, result, {"user", body, {}, {}, {}}};
  for (const auto kind : all_kinds)
    for (const auto& tokens : {testing::small_tokenizer(), bare_tokenizer()}) {
      const auto prompt = chat_template::create(kind, tokens)->render(messages, {});
      REQUIRE(prompt.has_value());
      CHECK(prompt->ends.size() >= 3);
      CHECK(prompt->ends.back().messages == 4);
      for (const auto& end : prompt->ends)
        CHECK(end.open_text.size() <= 1);
    }
}
