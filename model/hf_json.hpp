// JSON files of a Hugging Face folder. This is the one place of model/ that includes simdjson; its DOM is used through error
// codes, so nothing throws. A json_document owns the text's tree; elements taken from it must not outlive it. One thread each.
#pragma once
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <simdjson.h>

#include "base/result.hpp"

namespace troupe {

class json_document {
public:
  // `label` names the file in messages. errc::not_found where there is no such file; model_format where it is no JSON object.
  static result<json_document> read(const std::filesystem::path& path);
  static result<json_document> parse(std::span<const std::byte> text, std::string label);

  simdjson::dom::object root() const noexcept { return root_; }
  const std::string& label() const noexcept { return label_; }

private:
  json_document() = default;
  std::unique_ptr<simdjson::dom::parser> parser_;
  simdjson::dom::object root_;
  std::string label_;
};

// Typed reading of an object's fields. The first failure sticks and names file and field; null counts as missing.
class hf_fields {
public:
  explicit hf_fields(const json_document& document) : label_(document.label()), object_(document.root()) {}
  hf_fields(std::string label, simdjson::dom::object object) : label_(std::move(label)), object_(object) {}

  bool failed() const noexcept { return failed_; }
  const error& fault() const noexcept { return fault_; }
  void fail_at(std::string_view key, std::string_view why, errc code = errc::model_format);
  // Takes over the first failure of a reader of a nested object.
  void adopt(const hf_fields& nested);

  bool has(std::string_view key) const { return find(key).has_value(); }
  std::optional<simdjson::dom::element> find(std::string_view key) const;
  // A nested object's reader; nothing where the key is missing.
  std::optional<hf_fields> nested(std::string_view key);

  // Without a fallback the key must be there.
  std::int64_t integer(std::string_view key, std::int64_t low, std::int64_t high, std::optional<std::int64_t> fallback = {});
  double number(std::string_view key, double low, double high, std::optional<double> fallback = {});
  bool boolean(std::string_view key, bool fallback);
  std::string text(std::string_view key, std::optional<std::string> fallback = {});

private:
  std::optional<simdjson::dom::element> need(std::string_view key, bool optional);

  std::string label_;
  simdjson::dom::object object_;
  bool failed_ = false;
  error fault_;
};

} // namespace troupe
