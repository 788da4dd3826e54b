#include "model/hf_json.hpp"

#include <cstdio>

#include "config/limits.hpp"
#include "model/mapped_file.hpp"
#include "model/model_file_checks.hpp"

namespace troupe {

namespace {

std::string shown(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

} // namespace

result<json_document> json_document::read(const std::filesystem::path& path) {
  auto file = mapped_file::open(path);
  if (!file)
    return file.fault();
  return parse((*file)->bytes(), path.filename().string());
}

result<json_document> json_document::parse(std::span<const std::byte> text, std::string label) {
  if (text.size() > limits::json_file_bytes_max)
    return fail(errc::model_format, label + ": " + std::to_string(text.size()) + " bytes are over the limit of " +
                                        std::to_string(limits::json_file_bytes_max));
  json_document out;
  out.label_ = std::move(label);
  out.parser_ = std::make_unique<simdjson::dom::parser>();
  simdjson::dom::element root;
  if (const auto code = out.parser_->parse(reinterpret_cast<const char*>(text.data()), text.size()).get(root))
    return fail(errc::model_format, out.label_ + ": not valid JSON: " + simdjson::error_message(code));
  if (root.get(out.root_))
    return fail(errc::model_format, out.label_ + ": not a JSON object");
  return out;
}

void hf_fields::fail_at(std::string_view key, std::string_view why, errc code) {
  if (failed_)
    return;
  failed_ = true;
  fault_ = fail(code, label_ + ": " + std::string(key) + ": " + std::string(why));
}

void hf_fields::adopt(const hf_fields& nested) {
  if (failed_ || !nested.failed_)
    return;
  failed_ = true;
  fault_ = nested.fault_;
}

std::optional<simdjson::dom::element> hf_fields::find(std::string_view key) const {
  simdjson::dom::element element;
  if (object_.at_key(key).get(element) || element.is_null())
    return std::nullopt;
  return element;
}

std::optional<hf_fields> hf_fields::nested(std::string_view key) {
  const auto element = find(key);
  if (!element)
    return std::nullopt;
  simdjson::dom::object object;
  if (element->get(object)) {
    fail_at(key, "is not an object");
    return std::nullopt;
  }
  return hf_fields(label_ + ": " + std::string(key), object);
}

std::optional<simdjson::dom::element> hf_fields::need(std::string_view key, bool optional) {
  if (failed_)
    return std::nullopt;
  const auto element = find(key);
  if (!element && !optional)
    fail_at(key, "is missing");
  return element;
}

std::int64_t hf_fields::integer(std::string_view key, std::int64_t low, std::int64_t high,
                                std::optional<std::int64_t> fallback) {
  const auto element = need(key, fallback.has_value());
  if (!element)
    return fallback.value_or(0);
  std::int64_t value = 0;
  if (element->get(value))
    fail_at(key, "is not a whole number");
  else if (value < low || value > high)
    fail_at(key, std::to_string(value) + " is outside " + std::to_string(low) + ".." + std::to_string(high));
  else
    return value;
  return 0;
}

double hf_fields::number(std::string_view key, double low, double high, std::optional<double> fallback) {
  const auto element = need(key, fallback.has_value());
  if (!element)
    return fallback.value_or(0.0);
  double value = 0;
  if (element->get(value))
    fail_at(key, "is not a number");
  else if (!(value >= low && value <= high))
    fail_at(key, shown(value) + " is outside " + shown(low) + ".." + shown(high));
  else
    return value;
  return 0.0;
}

bool hf_fields::boolean(std::string_view key, bool fallback) {
  const auto element = need(key, true);
  bool value = fallback;
  if (element && element->get(value))
    fail_at(key, "is not true or false");
  return value;
}

std::string hf_fields::text(std::string_view key, std::optional<std::string> fallback) {
  const auto element = need(key, fallback.has_value());
  if (!element)
    return fallback.value_or("");
  std::string_view value;
  if (element->get(value))
    fail_at(key, "is not a string");
  return std::string(value);
}

} // namespace troupe
