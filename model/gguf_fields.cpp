#include "model/gguf_fields.hpp"

#include <cmath>
#include <cstdio>
#include <limits>

#include "model/weight_types_half.hpp"

namespace troupe {

namespace {

constexpr std::size_t described_bytes_max = 200;
constexpr std::uint64_t described_items_max = 6;

std::optional<std::int64_t> integer_at(gguf_type type, const std::byte* at) noexcept {
  switch (type) {
  case gguf_type::u8: return load<std::uint8_t>(at);
  case gguf_type::i8: return load<std::int8_t>(at);
  case gguf_type::u16: return load<std::uint16_t>(at);
  case gguf_type::i16: return load<std::int16_t>(at);
  case gguf_type::u32: return load<std::uint32_t>(at);
  case gguf_type::i32: return load<std::int32_t>(at);
  case gguf_type::i64: return load<std::int64_t>(at);
  case gguf_type::u64: {
    const auto value = load<std::uint64_t>(at);
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return std::nullopt;
    return static_cast<std::int64_t>(value);
  }
  default: return std::nullopt;
  }
}

std::optional<double> number_at(gguf_type type, const std::byte* at) noexcept {
  if (type == gguf_type::f32)
    return load<float>(at);
  if (type == gguf_type::f64)
    return load<double>(at);
  if (const auto whole = integer_at(type, at))
    return static_cast<double>(*whole);
  return std::nullopt;
}

std::string shown(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

std::string describe_one(gguf_type type, const std::byte* at) {
  if (type == gguf_type::boolean)
    return load<std::uint8_t>(at) != 0 ? "true" : "false";
  if (type == gguf_type::u64)
    return std::to_string(load<std::uint64_t>(at));
  if (const auto whole = integer_at(type, at))
    return std::to_string(*whole);
  return shown(number_at(type, at).value_or(0.0));
}

std::string abridged(std::string_view text) {
  return std::string(text.substr(0, described_bytes_max)) + (text.size() > described_bytes_max ? "..." : "");
}

std::string_view text_of(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Calls each(text) for every element; the reader has checked all lengths.
template <class Each>
void each_text(const gguf_value& value, std::uint64_t count, Each each) {
  std::uint64_t at = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto length = load<std::uint64_t>(value.bytes.data() + at);
    each(text_of(value.bytes.subspan(at + 8, length)));
    at += 8 + length;
  }
}

} // namespace

void gguf_fields::fail_at(std::string_view key, std::string_view why, errc code) {
  if (failed_)
    return;
  failed_ = true;
  const gguf_value* value = contents_.find(key);
  fault_ = fail(code, std::string(key) + (value != nullptr ? " at byte " + std::to_string(value->offset) : std::string()) +
                          ": " + std::string(why));
}

const gguf_value* gguf_fields::need(std::string_view key, bool optional) {
  if (failed_)
    return nullptr;
  const gguf_value* value = contents_.find(key);
  if (value == nullptr && !optional)
    fail_at(key, "the file has no such key");
  return value;
}

std::int64_t gguf_fields::integer(std::string_view key, std::int64_t low, std::int64_t high,
                                  std::optional<std::int64_t> fallback) {
  const gguf_value* value = need(key, fallback.has_value());
  if (value == nullptr)
    return fallback.value_or(0);
  if (value->type == gguf_type::array || value->type == gguf_type::string || value->type == gguf_type::boolean ||
      value->type == gguf_type::f32 || value->type == gguf_type::f64) {
    fail_at(key, "is not a whole number");
    return 0;
  }
  const auto whole = integer_at(value->type, value->bytes.data());
  if (!whole || *whole < low || *whole > high) {
    fail_at(key, describe(*value) + " is outside " + std::to_string(low) + ".." + std::to_string(high));
    return 0;
  }
  return *whole;
}

double gguf_fields::number(std::string_view key, double low, double high, std::optional<double> fallback) {
  const gguf_value* value = need(key, fallback.has_value());
  if (value == nullptr)
    return fallback.value_or(0.0);
  const auto found = gguf_width_of(value->type) != 0 ? number_at(value->type, value->bytes.data()) : std::nullopt;
  if (!found)
    fail_at(key, "is not a number");
  else if (!(*found >= low && *found <= high))
    fail_at(key, shown(*found) + " is outside " + shown(low) + ".." + shown(high));
  else
    return *found;
  return 0.0;
}

bool gguf_fields::boolean(std::string_view key, bool fallback) {
  const gguf_value* value = need(key, true);
  if (value == nullptr)
    return fallback;
  if (value->type != gguf_type::boolean) {
    fail_at(key, "is not a boolean");
    return fallback;
  }
  return load<std::uint8_t>(value->bytes.data()) != 0;
}

std::string gguf_fields::text(std::string_view key, std::optional<std::string> fallback) {
  const gguf_value* value = need(key, fallback.has_value());
  if (value == nullptr)
    return fallback.value_or("");
  if (value->type != gguf_type::string) {
    fail_at(key, "is not a string");
    return {};
  }
  return std::string(text_of(value->bytes));
}

std::vector<std::string> gguf_fields::texts(std::string_view key) {
  std::vector<std::string> out;
  const gguf_value* value = need(key, true);
  if (value == nullptr)
    return out;
  if (value->type != gguf_type::array || value->element != gguf_type::string) {
    fail_at(key, "is not an array of strings");
    return out;
  }
  out.reserve(value->count);
  each_text(*value, value->count, [&](std::string_view text) { out.emplace_back(text); });
  return out;
}

std::vector<std::int64_t> gguf_fields::integers(std::string_view key) {
  std::vector<std::int64_t> out;
  const gguf_value* value = need(key, true);
  if (value == nullptr)
    return out;
  const std::size_t width = value->type == gguf_type::array ? gguf_width_of(value->element) : 0;
  out.reserve(width != 0 ? value->count : 0);
  for (std::uint64_t i = 0; width != 0 && i < value->count; ++i) {
    const auto whole = integer_at(value->element, value->bytes.data() + i * width);
    if (!whole)
      break;
    out.push_back(*whole);
  }
  if (width == 0 || out.size() != value->count)
    fail_at(key, "is not an array of whole numbers");
  return out;
}

std::string describe(const gguf_value& value) {
  if (value.type == gguf_type::string)
    return abridged(text_of(value.bytes));
  if (value.type != gguf_type::array)
    return describe_one(value.type, value.bytes.data());
  const std::uint64_t shown_items = std::min(value.count, described_items_max);
  std::string out = "[";
  const auto separate = [&] { out += out.size() > 1 ? ", " : ""; };
  if (value.element == gguf_type::string)
    each_text(value, shown_items, [&](std::string_view text) {
      separate();
      out += "\"" + abridged(text) + "\"";
    });
  else
    for (std::uint64_t i = 0; i < shown_items; ++i) {
      separate();
      out += describe_one(value.element, value.bytes.data() + i * gguf_width_of(value.element));
    }
  if (shown_items < value.count)
    out += ", ... " + std::to_string(value.count) + " in all";
  return out + "]";
}

} // namespace troupe
