// Finds the text of members in a JSON document that was validated before: what a client wrote is passed on verbatim
// (tools, metadata), never re-serialised. Plain functions over views into the document; any thread.
#pragma once
#include <string_view>
#include <vector>

namespace troupe {

// The text of the root object's first member `key`, or empty. Precondition: `document` is a valid JSON object.
std::string_view raw_member(std::string_view document, std::string_view key);
// The text of each item of an array, or nothing where `array` is none. Precondition: valid JSON.
std::vector<std::string_view> raw_items(std::string_view array);

} // namespace troupe
