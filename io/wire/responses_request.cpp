#include "io/wire/responses_request.hpp"

#include <algorithm>

#include "config/limits.hpp"
#include "io/wire/input_items.hpp"
#include "io/wire/json_writer.hpp"
#include "io/wire/raw_json.hpp"
#include "io/wire/request_fields.hpp"

namespace troupe {
namespace {

// A Responses tool is flat; the template knows chat's nested form.
std::string nested_tool(std::string_view flat) {
  std::string out;
  json_writer w(out);
  w.begin_object().string("type", "function").key("function").begin_object();
  for (const std::string_view key : {std::string_view("name"), std::string_view("description"), std::string_view("parameters")})
    if (const std::string_view raw = raw_member(flat, key); !raw.empty() && raw != "null")
      w.raw(key, raw);
  w.end_object().end_object();
  return out;
}

void read_tools(json_fields& fields, std::string_view json, responses_request& out) {
  const auto items = fields.array("tools", static_cast<std::size_t>(limits::tools_max));
  const bool callable = read_tool_choice(fields);
  out.echo.tool_choice = callable ? "auto" : "none";
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
    tool.require("name");
    if (const auto name = tool.string("name"); name && name->empty())
      tool.refuse("name", errc::invalid_argument, "'" + path + ".name' must not be empty.");
    tool.object("parameters");
  }
  if (fields.fault())
    return;
  const std::string_view raw = raw_member(json, "tools");
  out.echo.tools = raw.empty() ? "[]" : std::string(raw);
  if (callable)
    for (const std::string_view tool : raw_items(raw))
      out.generation.tools.push_back(nested_tool(tool));
}

void read_include(json_fields& fields, sampling_request& out) {
  const auto items = fields.array("include", static_cast<std::size_t>(limits::content_parts_max));
  if (items)
    for (auto item : *items) {
      std::string_view name;
      if (item.get(name) == simdjson::SUCCESS && name == "message.output_text.logprobs")
        out.logprobs = true;
    }
  if (const auto top = fields.integer("top_logprobs", 0, limits::top_logprobs_max); top && *top > 0) {
    out.logprobs = true;
    out.top_logprobs = static_cast<int>(*top);
  }
}

void read_echo(json_fields& fields, std::string_view json, response_echo& out) {
  out.instructions = fields.string("instructions");
  out.previous_response_id = fields.string("previous_response_id").value_or("");
  out.temperature = fields.number("temperature", 0, 2);
  out.top_p = fields.number("top_p", 0, 1);
  out.store = fields.boolean("store").value_or(true);
  out.parallel_tool_calls = fields.boolean("parallel_tool_calls").value_or(true);
  if (const auto reasoning = fields.object("reasoning")) {
    json_fields nested(*reasoning, "reasoning", fields.fault());
    out.effort = nested.string("effort").value_or("");
  }
  if (const auto truncation = fields.string("truncation")) {
    if (*truncation != "auto" && *truncation != "disabled")
      fields.refuse("truncation", errc::invalid_argument, "'truncation' must be 'auto' or 'disabled'.");
    out.truncation = *truncation;
  }
  if (fields.object("metadata")) {
    const std::string_view raw = raw_member(json, "metadata");
    if (raw.size() > limits::metadata_bytes_max)
      fields.refuse("metadata", errc::too_large,
                    "'metadata' exceeds " + std::to_string(limits::metadata_bytes_max) + " bytes.");
    else if (!raw.empty())
      out.metadata = raw;
  }
}

} // namespace

bool valid_stream_id(std::string_view id) noexcept {
  return !id.empty() && id.size() <= 256 && std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
  });
}

std::optional<wire_fault> parse_responses_request(std::string_view json, responses_request& out) {
  wire_fault fault;
  simdjson::dom::parser parser;
  const auto root = parse_object(parser, json, fault);
  if (!root)
    return fault;
  json_fields fields(*root, "", fault);
  out.model = fields.string("model").value_or("");
  out.echo.prefill_only = !fields.boolean("generate").value_or(true);
  if (!out.echo.prefill_only && !fields.has("previous_response_id"))
    fields.require("input");
  read_input(fields, out.input);
  read_echo(fields, json, out.echo);
  read_tools(fields, json, out);
  for (const std::string_view key : {std::string_view("conversation"), std::string_view("prompt")})
    if (fields.has(key))
      fields.refuse(key, errc::unsupported, "'" + std::string(key) + "' is not supported.");
  if (fields.boolean("background").value_or(false))
    fields.refuse("background", errc::unsupported, "'background' is not supported.");
  read_sampling(fields, out.generation.sampling);
  read_include(fields, out.generation.sampling);
  read_stop(fields, out.generation.stop);
  read_run_options(fields, out.generation);
  if (fields.has("truncation") && !out.generation.overflow) // otherwise the settings decide
    out.generation.overflow = out.echo.truncation == "auto" ? overflow_policy::window : overflow_policy::refuse;
  read_choices(fields, 1);
  read_thinking(fields, out.generation.enable_thinking);
  if (const auto text = fields.object("text")) {
    json_fields nested(*text, "text", fault);
    read_text_format(nested, "format");
  }
  if (const auto count = fields.integer("max_output_tokens", 0, limits::context_tokens_max)) {
    out.echo.max_output_tokens = static_cast<int>(*count);
    out.generation.max_tokens = static_cast<int>(*count);
  }
  if (out.echo.prefill_only)
    out.generation.max_tokens = 0;
  out.stream = fields.boolean("stream").value_or(false);
  if (const auto id = fields.string("stream_id")) {
    if (!valid_stream_id(*id))
      fields.refuse("stream_id", errc::invalid_argument, "'stream_id' must be 1 to 256 of A-Z, a-z, 0-9, '_', '.' and '-'.");
    else
      out.stream_id = *id;
  }
  return fault ? std::optional(fault) : std::nullopt;
}

std::optional<wire_fault> parse_socket_event(std::string_view json, socket_event& out) {
  wire_fault fault;
  simdjson::dom::parser parser;
  const auto root = parse_object(parser, json, fault);
  if (!root)
    return fault;
  json_fields fields(*root, "", fault);
  fields.require("type");
  out.type = fields.string("type").value_or("");
  if (const auto id = fields.string("stream_id"); id && valid_stream_id(*id))
    out.stream_id = *id;
  out.response_id = fields.string("response_id").value_or("");
  out.previous_response_id = fields.string("previous_response_id").value_or("");
  if (out.type == "response.steer")
    if (const std::string_view raw = raw_member(json, "input"); !raw.empty())
      out.input = raw;
  return fault ? std::optional(fault) : std::nullopt;
}

} // namespace troupe
