// Rendered prompts equal what models' own Jinja templates give (chat_template_cases.py ran them), text and ids.
#include <doctest/doctest.h>
#include <fstream>
#include <simdjson.h>
#include <sstream>

#include "model/chat_template.hpp"
#include "tests/golden/tokenizer_corpus.hpp"
#include "tests/support/chat_json.hpp"
#include "tests/support/small_tokenizer.hpp"
#include "tests/support/tokenizer_json.hpp"

using namespace troupe;

namespace {

const std::string golden = std::string(TROUPE_SOURCE_DIR) + "/tests/golden/";

std::string text_at(simdjson::dom::element object, std::string_view key) {
  return std::string(std::string_view(object[key]));
}

// The text of each element as the file has it: what a client sent, spacing included.
std::vector<std::string> raw_tools(const std::filesystem::path& body_file) {
  simdjson::ondemand::parser parser;
  auto padded = simdjson::padded_string::load(body_file.string());
  auto document = parser.iterate(padded.value());
  std::vector<std::string> tools;
  for (auto tool : document["tools"])
    tools.emplace_back(std::string_view(tool.get_object().value().raw_json()));
  return tools;
}

rendered_prompt rendered(template_kind kind, std::shared_ptr<const tokenizer> t, const std::vector<chat_message>& messages,
                         const render_options& options) {
  auto made = chat_template::create(kind, std::move(t));
  REQUIRE(made.has_value());
  auto prompt = made->render(messages, options);
  REQUIRE(prompt.has_value());
  return std::move(prompt).value();
}

bool names_control_tokens(const std::vector<chat_message>& messages) {
  for (const auto& m : messages)
    if (m.content.find("think>") != std::string::npos)
      return true;
  return false;
}

} // namespace

TEST_CASE("small conversations render as each model's own template does") {
  simdjson::dom::parser parser;
  const auto all = testing::qwen3_tokenizer();
  std::size_t cases = 0, compared_ids = 0;
  for (simdjson::dom::element c : simdjson::dom::array(parser.load(golden + "chat_template_cases.json"))) {
    const std::string name = text_at(c, "template");
    CAPTURE(name);
    CAPTURE(text_at(c, "title"));
    const auto kind = template_named(name);
    REQUIRE(kind.has_value());
    const auto messages = testing::read_messages(c["messages"]);
    render_options options;
    for (simdjson::dom::element tool : simdjson::dom::array(c["tools"]))
      options.tools.emplace_back(std::string_view(tool));
    options.add_generation_prompt = bool(c["generate"]);
    if (bool thinking = false; c["thinking"].get(thinking) == simdjson::SUCCESS)
      options.enable_thinking = thinking;
    const auto prompt = rendered(*kind, testing::small_tokenizer(), messages, options);
    CHECK(prompt.text == text_at(c, "text"));
    CHECK(prompt.thinking_open == (*kind == template_kind::qwen3_thinking && options.add_generation_prompt));
    ++cases;
    // Whole-text tokenising is the reference for ids wherever no body names a control token.
    if (all == nullptr || *kind == template_kind::llama3 || names_control_tokens(messages))
      continue;
    const auto with_ids = rendered(*kind, all, messages, options);
    CHECK(with_ids.tokens == all->encode_with_added_tokens(with_ids.text));
    ++compared_ids;
  }
  CHECK(cases > 200);
  CHECK((all == nullptr || compared_ids > 150));
}

TEST_CASE("recorded requests of a bot host render to the ids that Jinja and Hugging Face's tokenizer give") {
  const auto t = testing::qwen3_tokenizer();
  const auto folder = testing::shared_folder() / "data" / "requests";
  if (t == nullptr || !std::filesystem::exists(folder))
    return;
  std::ifstream digests(golden + "chat_template_requests.txt");
  std::string name;
  int thinking = 0;
  std::size_t bytes = 0, count = 0, lines = 0;
  std::uint64_t text = 0, ids = 0;
  while (digests >> std::dec >> name >> thinking >> bytes >> std::hex >> text >> std::dec >> count >> std::hex >> ids) {
    ++lines;
    CAPTURE(name);
    CAPTURE(thinking);
    simdjson::dom::parser parser;
    const auto messages = testing::read_messages(parser.load((folder / name).string())["messages"]);
    const auto prompt = rendered(template_kind::qwen3, t, messages, {raw_tools(folder / name), true, thinking != 0});
    CHECK(prompt.text.size() == bytes);
    CHECK(testing::fnv1a(prompt.text) == text);
    CHECK(prompt.tokens.size() == count);
    CHECK(testing::fnv1a(prompt.tokens) == ids);
  }
  CHECK(lines == 10);
}

TEST_CASE("the tiny model's golden prompts are tokenised and rendered to their ids") {
  const auto t = testing::tiny_tokenizer();
  const auto file = testing::shared_folder() / "tiny-model" / "golden.json";
  if (t == nullptr || !std::filesystem::exists(file))
    return;
  simdjson::dom::parser parser;
  std::size_t prompts = 0;
  for (simdjson::dom::element c : simdjson::dom::array(parser.load(file.string())["cases"])) {
    const std::string text = text_at(c, "prompt");
    CAPTURE(text);
    std::vector<token_id> expected;
    for (simdjson::dom::element id : simdjson::dom::array(c["ids"]))
      expected.push_back(static_cast<token_id>(std::int64_t(id)));
    CHECK(t->encode_with_added_tokens(text) == expected);
    ++prompts;
    // Undo the template, then render again.
    constexpr std::string_view open = "<|im_start|>", close = "<|im_end|>\n", think = "<think>\n\n</think>\n\n";
    std::vector<chat_message> messages;
    std::size_t at = 0;
    for (std::size_t end = 0; (end = text.find(close, at)) != std::string::npos; at = end + close.size()) {
      const auto turn = std::string_view(text).substr(at + open.size(), end - at - open.size());
      const auto role_end = turn.find('\n');
      messages.push_back({std::string(turn.substr(0, role_end)), std::string(turn.substr(role_end + 1)), {}, {}, {}});
    }
    render_options options;
    options.enable_thinking = !text.ends_with(think);
    CHECK(rendered(template_kind::qwen3, t, messages, options).tokens == expected);
  }
  CHECK(prompts == 20);
}
