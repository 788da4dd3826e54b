#include "io/wire/request_fields.hpp"

#include <charconv>
#include <limits>

#include "config/limits.hpp"

namespace troupe {
namespace {

constexpr std::int64_t int64_min = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t int64_max = std::numeric_limits<std::int64_t>::max();

std::optional<float> read_float(json_fields& fields, std::string_view key, double low, double high) {
  const auto value = fields.number(key, low, high);
  return value ? std::optional<float>(static_cast<float>(*value)) : std::nullopt;
}

void read_logit_bias(json_fields& fields, std::vector<std::pair<token_id, float>>& out) {
  const auto object = fields.object("logit_bias");
  if (!object)
    return;
  for (const auto [key, value] : *object) {
    token_id token = -1;
    const auto end = std::from_chars(key.data(), key.data() + key.size(), token);
    double bias = 0;
    if (end.ec != std::errc() || end.ptr != key.data() + key.size() || token < 0)
      return fields.refuse("logit_bias", errc::invalid_argument, "'logit_bias' must map token ids to numbers.");
    if (value.get(bias) != simdjson::SUCCESS || !(bias >= -100 && bias <= 100))
      return fields.refuse("logit_bias", errc::invalid_argument, "'logit_bias' values must be numbers between -100 and 100.");
    if (out.size() == static_cast<std::size_t>(limits::logit_bias_max))
      return fields.refuse("logit_bias", errc::too_large,
                           "'logit_bias' has more than " + std::to_string(limits::logit_bias_max) + " entries.");
    out.emplace_back(token, static_cast<float>(bias));
  }
}

} // namespace

void read_sampling(json_fields& fields, sampling_request& out) {
  out.temperature = read_float(fields, "temperature", 0, 2);
  // OpenAI allows 0; the sampler's range is open there, and the smallest share keeps the best token alone.
  if (const auto top_p = read_float(fields, "top_p", 0, 1))
    out.top_p = *top_p > 0 ? *top_p : std::numeric_limits<float>::min();
  if (const auto top_k = fields.integer("top_k", -1, limits::vocabulary_max))
    out.top_k = *top_k < 0 ? 0 : static_cast<int>(*top_k);
  out.min_p = read_float(fields, "min_p", 0, 1);
  if (out.min_p && *out.min_p >= 1)
    fields.refuse("min_p", errc::invalid_argument, "'min_p' must be below 1.");
  out.repetition_penalty = read_float(fields, "repetition_penalty", 0.01, 10);
  out.presence_penalty = read_float(fields, "presence_penalty", -2, 2);
  out.frequency_penalty = read_float(fields, "frequency_penalty", -2, 2);
  if (const auto seed = fields.integer("seed", int64_min, int64_max))
    out.seed = static_cast<std::uint64_t>(*seed);
  read_logit_bias(fields, out.logit_bias);
}

void read_stop(json_fields& fields, std::vector<std::string>& out) {
  const auto add = [&](std::string_view text) {
    if (text.empty() || text.size() > limits::stop_string_bytes_max)
      return fields.refuse("stop", errc::invalid_argument,
                           "'stop' strings must have 1 to " + std::to_string(limits::stop_string_bytes_max) + " bytes.");
    out.emplace_back(text);
  };
  const auto value = fields.find("stop");
  if (!value)
    return;
  std::string_view text;
  if (value->get(text) == simdjson::SUCCESS)
    return add(text);
  if (!value->is_array())
    return fields.refuse("stop", errc::invalid_argument, "'stop' must be a string or an array of strings.");
  const auto items = fields.array("stop", static_cast<std::size_t>(limits::stop_strings_max));
  if (!items)
    return;
  for (auto item : *items) {
    if (item.get(text) != simdjson::SUCCESS)
      return fields.refuse("stop", errc::invalid_argument, "'stop' must be a string or an array of strings.");
    add(text);
  }
}

void read_run_options(json_fields& fields, generation_request& out) {
  out.ignore_eos = fields.boolean("ignore_eos").value_or(false);
  if (const auto retention = fields.string("prompt_cache_retention")) {
    if (*retention != "24h" && *retention != "in_memory" && *retention != "in-memory")
      fields.refuse("prompt_cache_retention", errc::invalid_argument, "'prompt_cache_retention' must be 'in_memory' or '24h'.");
    out.pin_prompt = *retention == "24h";
  }
  if (const auto overflow = fields.string("context_overflow")) {
    if (*overflow != "error" && *overflow != "window" && *overflow != "compress")
      fields.refuse("context_overflow", errc::invalid_argument, "'context_overflow' must be 'error', 'window' or 'compress'.");
    out.overflow = *overflow == "window"     ? overflow_policy::window
                   : *overflow == "compress" ? overflow_policy::compress
                                             : overflow_policy::refuse;
  }
  if (const auto count = fields.integer("context_tokens", 1, limits::context_tokens_max))
    out.context_tokens = static_cast<int>(*count);
}

int read_choices(json_fields& fields, int choices_max) {
  for (const auto& [key, most] : {std::pair(std::string_view("n"), choices_max), std::pair(std::string_view("best_of"), 1)}) {
    const auto count = fields.integer(key, int64_min, int64_max);
    if (count && (*count < 1 || *count > most))
      fields.refuse(key, *count < 1 || most > 1 ? errc::invalid_argument : errc::unsupported,
                    "'" + std::string(key) + "' must be 1" + (most > 1 ? " to " + std::to_string(most) : "") + ".");
  }
  return static_cast<int>(fields.integer("n", int64_min, int64_max).value_or(1));
}

void read_thinking(json_fields& fields, std::optional<bool>& out) {
  out = fields.boolean("enable_thinking");
  if (const auto nested = fields.object("chat_template_kwargs")) {
    json_fields kwargs(*nested, fields.path_of("chat_template_kwargs"), fields.fault());
    const auto value = kwargs.boolean("enable_thinking");
    if (!out)
      out = value;
  }
  auto effort = fields.string("reasoning_effort");
  if (const auto nested = fields.object("reasoning")) {
    json_fields reasoning(*nested, fields.path_of("reasoning"), fields.fault());
    auto value = reasoning.string("effort");
    if (!effort)
      effort = std::move(value);
  }
  if (effort && !out)
    out = *effort != "none";
}

bool read_include_usage(json_fields& fields) {
  const auto nested = fields.object("stream_options");
  if (!nested)
    return false;
  json_fields options(*nested, fields.path_of("stream_options"), fields.fault());
  return options.boolean("include_usage").value_or(false);
}

std::optional<std::string> read_text_content(json_fields& fields, std::string_view key) {
  const auto value = fields.find(key);
  if (!value)
    return std::nullopt;
  std::string_view text;
  if (value->get(text) == simdjson::SUCCESS)
    return std::string(text);
  if (!value->is_array()) {
    fields.refuse(key, errc::invalid_argument, "'" + fields.path_of(key) + "' must be a string or an array of text parts.");
    return std::nullopt;
  }
  const auto parts = fields.array(key, static_cast<std::size_t>(limits::content_parts_max));
  if (!parts)
    return std::nullopt;
  std::string out;
  std::size_t index = 0;
  for (auto item : *parts) {
    const std::string path = fields.item_path(key, index++);
    simdjson::dom::object object;
    if (item.get(text) == simdjson::SUCCESS) {
      out += text;
      continue;
    }
    if (item.get(object) != simdjson::SUCCESS) {
      fields.refuse(key, errc::invalid_argument, "'" + path + "' must be an object with a type.");
      return std::nullopt;
    }
    json_fields part(object, path, fields.fault());
    const std::string type = part.string("type").value_or("");
    if (type == "refusal") {
      out += part.string("refusal").value_or("");
    } else if (type == "text" || type == "input_text" || type == "output_text") {
      part.require("text");
      out += part.string("text").value_or("");
    } else {
      part.refuse("type", type.empty() ? errc::invalid_argument : errc::unsupported,
                  type.empty() ? "'" + path + ".type' is required."
                               : "Content parts of type '" + type + "' are not supported.");
      return std::nullopt;
    }
  }
  return out;
}

void read_text_format(json_fields& fields, std::string_view key) {
  const auto nested = fields.object(key);
  if (!nested)
    return;
  json_fields format(*nested, fields.path_of(key), fields.fault());
  format.require("type");
  const auto type = format.string("type");
  if (type && *type != "text")
    format.refuse("type", errc::unsupported, "'" + format.path_of("type") + "' supports only 'text', not '" + *type + "'.");
}

bool read_tool_choice(json_fields& fields) {
  const auto value = fields.find("tool_choice");
  std::string_view text;
  if (!value)
    return true;
  if (value->get(text) == simdjson::SUCCESS && (text == "auto" || text == "none"))
    return text == "auto";
  fields.refuse("tool_choice", errc::unsupported, "'tool_choice' supports only 'auto' and 'none'.");
  return false;
}

} // namespace troupe
