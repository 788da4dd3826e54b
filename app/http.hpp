// A blocking HTTP client over libcurl for the command line. A server that sends nothing for a long while is given up.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace troupe {

struct http_reply {
  int status = 0;
  std::string body; // empty where on_bytes took it
};

// What stands before "/v1/": users paste an address with a slash or with /v1 behind it.
std::string base_url(std::string url);

// POSTs (or GETs, when `body` is empty). on_bytes, where given, gets a 2xx body as it arrives and may stop by returning false.
result<http_reply> http_call(const std::string& url, const std::string& body, const std::string& key = {},
                             const std::function<bool(std::string_view)>& on_bytes = {});

} // namespace troupe
