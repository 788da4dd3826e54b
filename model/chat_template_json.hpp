// JSON text as Python's json.dumps(ensure_ascii=False) writes it, which is what the templates' `tojson` prints and models were
// trained on: ", " and ": " between tokens, key order kept, characters unescaped where JSON allows it.
//
// Numbers stay as they are written and repeated keys stay repeated, where Python would rewrite or drop them. A lone surrogate
// escape becomes U+FFFD. Nesting is bounded by limits::json_depth_max. Pure function; any thread.
#pragma once
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace troupe {

// errc::invalid_argument with the byte where `text` stops to be one JSON value.
result<std::string> respace_json(std::string_view text);

// `text` as a JSON string, quotes included.
std::string json_string(std::string_view text);

} // namespace troupe
