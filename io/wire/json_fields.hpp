// Reads the members of one JSON object with type and range checks that name the field. Only wire/*.cpp include this: it
// brings in simdjson.
//
// Promises: an absent member and a null one are the same and no fault; the first wrong member is kept in the fault that the
// readers of one document share, later reads go on harmlessly. Unknown members are never looked at. Lives on one stack.
#pragma once
#include <cstdint>
#include <optional>
#include <simdjson.h>
#include <string>
#include <string_view>

#include "io/wire/http_status.hpp"

namespace troupe {

class json_fields {
public:
  json_fields(simdjson::dom::object object, std::string path, wire_fault& fault)
      : object_(object), path_(std::move(path)), fault_(fault) {}

  bool has(std::string_view key) const { return find(key).has_value(); }
  std::optional<bool> boolean(std::string_view key);
  std::optional<double> number(std::string_view key, double low, double high);
  // An integral double such as 3.0 is taken for an integer.
  std::optional<std::int64_t> integer(std::string_view key, std::int64_t low, std::int64_t high);
  std::optional<std::string> string(std::string_view key);
  std::optional<simdjson::dom::object> object(std::string_view key);
  std::optional<simdjson::dom::array> array(std::string_view key, std::size_t items_max);
  std::optional<simdjson::dom::element> find(std::string_view key) const;

  // Records a fault of the field, unless one is recorded already.
  void refuse(std::string_view key, errc code, std::string message);
  void require(std::string_view key);

  std::string path_of(std::string_view key) const { return path_.empty() ? std::string(key) : path_ + "." + std::string(key); }
  std::string item_path(std::string_view key, std::size_t index) const {
    return path_of(key) + "[" + std::to_string(index) + "]";
  }
  wire_fault& fault() { return fault_; }

private:
  void wrong_type(std::string_view key, std::string_view wanted, simdjson::dom::element got);

  simdjson::dom::object object_;
  std::string path_;
  wire_fault& fault_;
};

// The document's root object, or a fault: bad JSON, bad UTF-8, deeper than limits::json_depth_max, not an object. The
// parser owns what the object points into.
std::optional<simdjson::dom::object> parse_object(simdjson::dom::parser& parser, std::string_view text, wire_fault& fault);

} // namespace troupe
