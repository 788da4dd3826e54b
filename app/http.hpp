// A blocking HTTP client over libcurl for the command line: `troupe chat --url` and `troupe bench`.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace troupe {

struct http_answer {
  int status = 0;
  std::string body; // empty where on_bytes took it
};

// POSTs (or GETs, when `body` is empty). on_bytes, where given, gets a 2xx body as it arrives and may stop by returning false.
result<http_answer> http_call(const std::string& url, const std::string& body, const std::string& key = {},
                              const std::function<bool(std::string_view)>& on_bytes = {});

} // namespace troupe
