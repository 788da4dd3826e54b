// Looks into JSON that the code under test wrote, with an independent parser.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace troupe::testing {

// The compact text of what stands at a JSON pointer ("/choices/0/index"), strings without their quotes; "<none>" where there
// is nothing, "<invalid>" where the document is no JSON.
std::string json_at(std::string_view json, std::string_view pointer);
bool valid_json(std::string_view json);
// The names of an object's members, in order.
std::vector<std::string> json_keys(std::string_view json, std::string_view pointer);
// The data of each SSE event in `stream`.
std::vector<std::string> sse_data(std::string_view stream);
// The body of an HTTP answer whose transfer is chunked.
std::string unchunked(std::string_view body);

} // namespace troupe::testing
