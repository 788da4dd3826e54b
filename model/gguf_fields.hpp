// Typed reading of GGUF metadata. The first failure sticks and names the key and its byte offset, so that a caller reads a
// group of fields and checks once. One thread.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/gguf_reader.hpp"

namespace troupe {

class gguf_fields {
public:
  explicit gguf_fields(const gguf_contents& contents) : contents_(contents) {}

  bool has(std::string_view key) const { return contents_.find(key) != nullptr; }
  bool failed() const noexcept { return failed_; }
  const error& fault() const noexcept { return fault_; }
  void fail_at(std::string_view key, std::string_view why, errc code = errc::model_format);

  // Any integer type. Without a fallback the key must be there.
  std::int64_t integer(std::string_view key, std::int64_t low, std::int64_t high, std::optional<std::int64_t> fallback = {});
  // Any number type; must be finite.
  double number(std::string_view key, double low, double high, std::optional<double> fallback = {});
  bool boolean(std::string_view key, bool fallback);
  std::string text(std::string_view key, std::optional<std::string> fallback = {});
  std::vector<std::string> texts(std::string_view key);     // empty where the key is missing
  std::vector<std::int64_t> integers(std::string_view key); // empty where the key is missing

private:
  // null, having recorded a failure where the key is missing and needed.
  const gguf_value* need(std::string_view key, bool optional);

  const gguf_contents& contents_;
  bool failed_ = false;
  error fault_;
};

// A value as text for people: long texts and arrays abridged.
std::string describe(const gguf_value& value);

} // namespace troupe
