#include "config/limits.hpp"
#include "io/wire/completion.hpp"
#include "io/wire/request_fields.hpp"

namespace troupe {
namespace {

void read_tokens(json_fields& fields, simdjson::dom::array items, std::vector<token_id>& out) {
  for (auto item : items) {
    std::int64_t token = 0;
    if (item.get(token) != simdjson::SUCCESS || token < 0 || token >= limits::vocabulary_max)
      return fields.refuse("prompt", errc::invalid_argument, "'prompt' must be a string or an array of token ids.");
    out.push_back(static_cast<token_id>(token));
  }
}

// "text", ["text"], [1, 2] or [[1, 2]]; more than one prompt at a time is refused.
void read_prompt(json_fields& fields, generation_request& out) {
  fields.require("prompt");
  const auto value = fields.find("prompt");
  std::string_view text;
  if (!value)
    return;
  if (value->get(text) == simdjson::SUCCESS) {
    out.prompt = std::string(text);
    return;
  }
  const auto items = fields.array("prompt", static_cast<std::size_t>(limits::context_tokens_max));
  if (!items)
    return;
  const std::size_t count = items->size();
  if (count == 0)
    return fields.refuse("prompt", errc::invalid_argument, "'prompt' must not be empty.");
  const auto first = items->at(0);
  simdjson::dom::array nested;
  const bool several_kinds = first.get(text) == simdjson::SUCCESS || first.get(nested) == simdjson::SUCCESS;
  if (!several_kinds)
    return read_tokens(fields, *items, out.prompt_tokens);
  if (count > 1)
    return fields.refuse("prompt", errc::unsupported, "'prompt' must be one prompt, not several.");
  if (first.get(text) == simdjson::SUCCESS)
    out.prompt = std::string(text);
  else if (nested.size() == 0)
    fields.refuse("prompt", errc::invalid_argument, "'prompt' must not be empty.");
  else
    read_tokens(fields, nested, out.prompt_tokens);
}

} // namespace

std::optional<wire_fault> parse_completion_request(std::string_view json, completion_request& out) {
  wire_fault fault;
  simdjson::dom::parser parser;
  const auto root = parse_object(parser, json, fault);
  if (!root)
    return fault;
  json_fields fields(*root, "", fault);
  out.model = fields.string("model").value_or("");
  read_prompt(fields, out.generation);
  if (fields.boolean("echo").value_or(false))
    fields.refuse("echo", errc::unsupported, "'echo' is not supported.");
  if (!fields.string("suffix").value_or("").empty())
    fields.refuse("suffix", errc::unsupported, "'suffix' is not supported.");
  read_sampling(fields, out.generation.sampling);
  if (const auto top = fields.integer("logprobs", 0, limits::top_logprobs_max)) {
    out.generation.sampling.logprobs = true;
    out.generation.sampling.top_logprobs = static_cast<int>(*top);
  }
  read_stop(fields, out.generation.stop);
  read_run_options(fields, out.generation);
  read_choices(fields, 1);
  // OpenAI's default here; unlike chat, where an absent limit means as much as fits.
  constexpr int default_max_tokens = 16;
  out.generation.max_tokens =
      static_cast<int>(fields.integer("max_tokens", 0, limits::context_tokens_max).value_or(default_max_tokens));
  out.stream = fields.boolean("stream").value_or(false);
  out.include_usage = read_include_usage(fields);
  return fault ? std::optional(fault) : std::nullopt;
}

} // namespace troupe
