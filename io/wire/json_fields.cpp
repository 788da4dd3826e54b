#include "io/wire/json_fields.hpp"

#include <algorithm>
#include <cmath>

#include "config/limits.hpp"

namespace troupe {
namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;

std::string_view type_name(element value) {
  switch (value.type()) {
  case element_type::ARRAY: return "an array";
  case element_type::OBJECT: return "an object";
  case element_type::STRING: return "a string";
  case element_type::BOOL: return "a boolean";
  case element_type::NULL_VALUE: return "null";
  default: return "a number";
  }
}

std::string number_text(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.')
    text.pop_back();
  return text;
}

} // namespace

std::optional<element> json_fields::find(std::string_view key) const {
  element value;
  if (object_.at_key(key).get(value) != simdjson::SUCCESS || value.is_null())
    return std::nullopt;
  return value;
}

void json_fields::refuse(std::string_view key, errc code, std::string message) {
  if (fault_)
    return;
  fault_.code = code;
  fault_.param = path_of(key);
  fault_.message = std::move(message);
}

void json_fields::require(std::string_view key) {
  if (!has(key)) {
    refuse(key, errc::invalid_argument, "'" + path_of(key) + "' is required.");
    if (fault_.param == path_of(key) && fault_.wire_code.empty())
      fault_.wire_code = "missing_required_parameter";
  }
}

void json_fields::wrong_type(std::string_view key, std::string_view wanted, element got) {
  const bool first = !fault_;
  refuse(key, errc::invalid_argument,
         "'" + path_of(key) + "' must be " + std::string(wanted) + ", not " + std::string(type_name(got)) + ".");
  if (first)
    fault_.wire_code = "invalid_type";
}

std::optional<bool> json_fields::boolean(std::string_view key) {
  const auto value = find(key);
  bool out = false;
  if (!value)
    return std::nullopt;
  if (value->get(out) == simdjson::SUCCESS)
    return out;
  wrong_type(key, "a boolean", *value);
  return std::nullopt;
}

std::optional<double> json_fields::number(std::string_view key, double low, double high) {
  const auto value = find(key);
  double out = 0;
  if (!value)
    return std::nullopt;
  if (value->get(out) != simdjson::SUCCESS) {
    wrong_type(key, "a number", *value);
    return std::nullopt;
  }
  if (out >= low && out <= high)
    return out;
  refuse(key, errc::invalid_argument,
         "'" + path_of(key) + "' must be between " + number_text(low) + " and " + number_text(high) + ".");
  return std::nullopt;
}

std::optional<std::int64_t> json_fields::integer(std::string_view key, std::int64_t low, std::int64_t high) {
  const auto value = find(key);
  if (!value)
    return std::nullopt;
  std::int64_t out = 0;
  std::uint64_t large = 0; // above the signed range, hence out of any range asked for
  double real = 0;
  const bool too_large = value->is_uint64() && !value->is_int64() && value->get(large) == simdjson::SUCCESS;
  if (!too_large && value->get(out) != simdjson::SUCCESS) {
    if (value->get(real) != simdjson::SUCCESS || real != std::floor(real) || std::abs(real) > 0x1p53) {
      wrong_type(key, "an integer", *value);
      return std::nullopt;
    }
    out = static_cast<std::int64_t>(real);
  }
  if (!too_large && out >= low && out <= high)
    return out;
  refuse(key, errc::invalid_argument,
         "'" + path_of(key) + "' must be between " + std::to_string(low) + " and " + std::to_string(high) + ".");
  return std::nullopt;
}

std::optional<std::string> json_fields::string(std::string_view key) {
  const auto value = find(key);
  std::string_view out;
  if (!value)
    return std::nullopt;
  if (value->get(out) == simdjson::SUCCESS)
    return std::string(out);
  wrong_type(key, "a string", *value);
  return std::nullopt;
}

std::optional<simdjson::dom::object> json_fields::object(std::string_view key) {
  const auto value = find(key);
  simdjson::dom::object out;
  if (!value)
    return std::nullopt;
  if (value->get(out) == simdjson::SUCCESS)
    return out;
  wrong_type(key, "an object", *value);
  return std::nullopt;
}

std::optional<simdjson::dom::array> json_fields::array(std::string_view key, std::size_t items_max) {
  const auto value = find(key);
  simdjson::dom::array out;
  if (!value)
    return std::nullopt;
  if (value->get(out) != simdjson::SUCCESS) {
    wrong_type(key, "an array", *value);
    return std::nullopt;
  }
  std::size_t count = 0;
  for ([[maybe_unused]] auto item : out)
    if (++count > items_max) {
      refuse(key, errc::too_large, "'" + path_of(key) + "' has more than " + std::to_string(items_max) + " items.");
      return std::nullopt;
    }
  return out;
}

std::optional<simdjson::dom::object> parse_object(simdjson::dom::parser& parser, std::string_view text, wire_fault& fault) {
  const auto refuse = [&](std::string message) {
    fault.code = errc::invalid_argument;
    fault.message = std::move(message);
    fault.wire_code = "invalid_json";
    return std::nullopt;
  };
  // simdjson counts the root scalar as a level of its own.
  if (auto e = parser.allocate(std::max<std::size_t>(text.size(), 64), static_cast<std::size_t>(limits::json_depth_max)))
    return refuse("The request is too large to parse: " + std::string(simdjson::error_message(e)));
  element root;
  if (const auto e = parser.parse(text.data(), text.size(), true).get(root)) {
    if (e == simdjson::UTF8_ERROR)
      return refuse("The request is not valid UTF-8.");
    if (e == simdjson::DEPTH_ERROR)
      return refuse("The request nests deeper than " + std::to_string(limits::json_depth_max) + " levels.");
    return refuse("The request is not valid JSON: " + std::string(simdjson::error_message(e)));
  }
  simdjson::dom::object out;
  if (root.get(out) != simdjson::SUCCESS)
    return refuse("The request must be a JSON object.");
  return out;
}

} // namespace troupe
