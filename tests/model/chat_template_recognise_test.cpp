// Which template a model's Jinja text is. The texts here are shortened to what tells them apart.
#include <doctest/doctest.h>
#include <simdjson.h>

#include "model/chat_template.hpp"
#include "tests/support/tokenizer_json.hpp"

using namespace troupe;

namespace {

const std::string loop = "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
                         "'<|im_end|>' + '\n'}}{% endfor %}"
                         "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

std::string with_default(const std::string& prompt) {
  return "{% if messages[0]['role'] != 'system' %}{{ '<|im_start|>system\n" + prompt + "<|im_end|>\n' }}{% endif %}" + loop;
}

const std::string tools =
    R"({%- if tools %}{{- "# Tools within <tools></tools> XML tags:\n<tools>" }}{{- tool | tojson }})"
    R"({{- "<tool_call>\n{\"name\": <function-name>, \"arguments\": <args-json-object>}\n</tool_call><|im_end|>\n" }}{%- endif %})"
    R"({{- '<|im_start|>system\n' + messages[0].content + '<|im_end|>\n' }}{{- '\n<tool_response>\n' }})";
const std::string thoughts =
    R"({%- set ns = namespace(last_query_index=0) %}{%- if message.reasoning_content %}{{- '<think>\n' + r + '\n</think>\n\n' }}{%- endif %})";
const std::string opening = R"({%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }})";

template_kind kind_of(std::string_view text) {
  const auto kind = recognise_template(text);
  REQUIRE(kind.has_value());
  return kind.value();
}

std::string refused(std::string_view text) {
  const auto kind = recognise_template(text);
  REQUIRE_FALSE(kind.has_value());
  CHECK(kind.fault().code == errc::unsupported);
  return kind.fault().message;
}

std::string template_in(const std::filesystem::path& config) {
  simdjson::dom::parser parser;
  return std::string(std::string_view(parser.load(config.string())["chat_template"]));
}

} // namespace

TEST_CASE("plain ChatML and its default system prompts are told apart") {
  CHECK(kind_of(loop) == template_kind::chatml);
  CHECK(kind_of(with_default("You are a helpful AI assistant named SmolLM, trained by Hugging Face")) ==
        template_kind::smollm2);
  CHECK(kind_of(with_default("You are a helpful assistant.")) == template_kind::qwen2);
  refused(with_default("You are a pirate."));
}

TEST_CASE("Qwen's templates are told apart by how they think and by their default prompt") {
  const std::string switchable =
      "{%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}";
  CHECK(kind_of(tools + thoughts + opening + switchable) == template_kind::qwen3);
  CHECK(kind_of(tools + thoughts + R"({{- '<|im_start|>assistant\n<think>\n' }})") == template_kind::qwen3_thinking);
  CHECK(kind_of(tools + opening) == template_kind::qwen3_instruct);
  const std::string qwen2_5 =
      R"({{- '<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\n' }})";
  CHECK(kind_of(tools + qwen2_5 + opening) == template_kind::qwen2_5);
  refused(tools + R"({{- '<|im_start|>system\nYou are MiMo.<|im_end|>\n' }})" + opening);
  refused(tools + thoughts + opening); // thinks, but neither always nor switchably
  refused(tools + opening + "<|vision_start|>");
  refused(tools + thoughts + opening + switchable + "<function=");
}

TEST_CASE("Llama 3 is known, Llama 3.1's date lines are refused with the way out") {
  const std::string llama3 =
      "{% for message in messages %}{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ "
      "message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}"
      "{{ content }}{% endfor %}";
  CHECK(kind_of(llama3) == template_kind::llama3);
  CHECK(refused(llama3 + "{{- \"Cutting Knowledge Date: December 2023\\n\" }}").find("--chat-template llama3") !=
        std::string::npos);
  refused(llama3 + "{% if tools %}{% endif %}");
}

TEST_CASE("an unknown template is refused with the option and the names that it takes") {
  for (const char* text : {"", "{{ messages }}", "[INST] {{ messages[0].content }} [/INST]"}) {
    const auto line = refused(text);
    CHECK(line.find("--chat-template") != std::string::npos);
    CHECK(line.find("qwen3, ") != std::string::npos);
    CHECK(line.find("llama3") != std::string::npos);
  }
}

TEST_CASE("real files' templates are recognised") {
  for (const auto& file : {testing::shared_folder() / "data" / "qwen3-tokenizer" / "tokenizer_config.json",
                           testing::shared_folder() / "tiny-model" / "model" / "tokenizer_config.json"}) {
    if (!std::filesystem::exists(file)) {
      MESSAGE("skipped: " << file.string() << " is absent");
      continue;
    }
    CHECK(kind_of(template_in(file)) == template_kind::qwen3);
  }
}
