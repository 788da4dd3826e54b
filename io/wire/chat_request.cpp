#include "io/wire/chat_request.hpp"

#include "config/limits.hpp"
#include "io/wire/raw_json.hpp"
#include "io/wire/request_fields.hpp"

namespace troupe {
namespace {

void read_tool_calls(json_fields& message, chat_message& out) {
  const auto calls = message.array("tool_calls", static_cast<std::size_t>(limits::tool_calls_max));
  if (!calls)
    return;
  std::size_t index = 0;
  for (auto item : *calls) {
    const std::string path = message.item_path("tool_calls", index++);
    simdjson::dom::object object;
    if (item.get(object) != simdjson::SUCCESS)
      return message.refuse("tool_calls", errc::invalid_argument, "'" + path + "' must be an object.");
    json_fields call(object, path, message.fault());
    if (const auto type = call.string("type"); type && *type != "function")
      return call.refuse("type", errc::unsupported, "'" + path + ".type' must be 'function'.");
    call.require("function");
    const auto nested = call.object("function");
    if (!nested)
      return;
    json_fields function(*nested, path + ".function", message.fault());
    function.require("name");
    tool_call parsed;
    parsed.id = call.string("id").value_or("");
    parsed.name = function.string("name").value_or("");
    // Some clients replay parsed arguments instead of their text.
    if (const auto arguments = function.find("arguments"); arguments && arguments->is_object())
      parsed.arguments = simdjson::to_string(*arguments);
    else
      parsed.arguments = function.string("arguments").value_or("");
    if (parsed.arguments.empty())
      parsed.arguments = "{}";
    out.tool_calls.push_back(std::move(parsed));
  }
}

void read_message(json_fields& message, chat_message& out) {
  message.require("role");
  out.role = message.string("role").value_or("");
  if (out.role == "developer")
    out.role = "system";
  const bool assistant = out.role == "assistant";
  if (!assistant && out.role != "system" && out.role != "user" && out.role != "tool")
    return message.refuse("role", errc::invalid_argument,
                          "'" + message.path_of("role") + "' must be system, developer, user, assistant or tool.");
  if (assistant) {
    read_tool_calls(message, out);
    for (const std::string_view key : {std::string_view("reasoning_content"), std::string_view("reasoning")})
      if (auto text = message.string(key); text && out.reasoning.empty())
        out.reasoning = std::move(*text);
    if (out.tool_calls.empty() && out.reasoning.empty() && !message.has("refusal"))
      message.require("content");
  } else {
    message.require("content");
  }
  if (out.role == "tool")
    out.tool_call_id = message.string("tool_call_id").value_or("");
  out.content = read_text_content(message, "content").value_or("");
  if (assistant && out.content.empty())
    out.content = message.string("refusal").value_or("");
}

void read_messages(json_fields& fields, std::vector<chat_message>& out) {
  fields.require("messages");
  const auto items = fields.array("messages", static_cast<std::size_t>(limits::messages_max));
  if (!items)
    return;
  std::size_t index = 0;
  for (auto item : *items) {
    const std::string path = fields.item_path("messages", index++);
    simdjson::dom::object object;
    if (item.get(object) != simdjson::SUCCESS)
      return fields.refuse("messages", errc::invalid_argument, "'" + path + "' must be an object.");
    json_fields message(object, path, fields.fault());
    read_message(message, out.emplace_back());
    if (fields.fault())
      return;
  }
  if (out.empty())
    fields.refuse("messages", errc::invalid_argument, "'messages' must not be empty.");
}

void read_tools(json_fields& fields, std::string_view json, std::vector<std::string>& out) {
  const auto items = fields.array("tools", static_cast<std::size_t>(limits::tools_max));
  if (!items)
    return;
  std::size_t index = 0;
  for (auto item : *items) {
    const std::string path = fields.item_path("tools", index++);
    simdjson::dom::object object;
    if (item.get(object) != simdjson::SUCCESS)
      return fields.refuse("tools", errc::invalid_argument, "'" + path + "' must be an object.");
    json_fields tool(object, path, fields.fault());
    tool.require("type");
    if (const auto type = tool.string("type"); type && *type != "function")
      return tool.refuse("type", errc::unsupported, "Tools of type '" + *type + "' are not supported.");
    tool.require("function");
    const auto nested = tool.object("function");
    if (!nested)
      return;
    json_fields function(*nested, path + ".function", fields.fault());
    function.require("name");
    if (const auto name = function.string("name"); name && name->empty())
      function.refuse("name", errc::invalid_argument, "'" + path + ".function.name' must not be empty.");
    function.object("parameters");
  }
  const bool callable = read_tool_choice(fields);
  if (fields.fault() || !callable)
    return;
  for (const std::string_view raw : raw_items(raw_member(json, "tools")))
    out.emplace_back(raw);
}

void read_logprobs(json_fields& fields, sampling_request& out) {
  out.logprobs = fields.boolean("logprobs").value_or(false);
  const auto top = fields.integer("top_logprobs", 0, limits::top_logprobs_max);
  if (!top)
    return;
  if (!out.logprobs && *top > 0)
    fields.refuse("top_logprobs", errc::invalid_argument, "'top_logprobs' needs 'logprobs' to be true.");
  out.top_logprobs = static_cast<int>(*top);
}

} // namespace

std::optional<wire_fault> parse_chat_request(std::string_view json, chat_request& out) {
  wire_fault fault;
  simdjson::dom::parser parser;
  const auto root = parse_object(parser, json, fault);
  if (!root)
    return fault;
  json_fields fields(*root, "", fault);
  out.model = fields.string("model").value_or("");
  read_messages(fields, out.generation.messages);
  read_tools(fields, json, out.generation.tools);
  if (!fields.has("tools"))
    read_tool_choice(fields);
  for (const std::string_view key :
       {std::string_view("functions"), std::string_view("function_call"), std::string_view("audio")})
    if (fields.has(key))
      fields.refuse(key, errc::unsupported, "'" + std::string(key) + "' is not supported.");
  read_sampling(fields, out.generation.sampling);
  read_logprobs(fields, out.generation.sampling);
  read_stop(fields, out.generation.stop);
  read_run_options(fields, out.generation);
  out.choices = read_choices(fields, limits::choices_max);
  read_thinking(fields, out.generation.enable_thinking);
  read_text_format(fields, "response_format");
  for (const std::string_view key : {std::string_view("max_tokens"), std::string_view("max_completion_tokens")})
    if (const auto count = fields.integer(key, 0, limits::context_tokens_max))
      out.generation.max_tokens = static_cast<int>(*count);
  out.stream = fields.boolean("stream").value_or(false);
  out.include_usage = read_include_usage(fields);
  return fault ? std::optional(fault) : std::nullopt;
}

} // namespace troupe
