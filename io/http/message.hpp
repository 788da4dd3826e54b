// HTTP/1.1 messages as plain data, and their bytes. Parsing is Beast's (net/); writing is here, so that every answer can be
// tested without a socket. Pure functions; any thread.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/wire/http_status.hpp"

namespace troupe {

using header_list = std::vector<std::pair<std::string, std::string>>;

struct http_request {
  std::string method;
  std::string target;  // as sent: path and query
  header_list headers; // names in lower case
  std::string body;
  int version = 11; // 10 or 11
  bool keep_alive = true;

  // The first header of that (lower case) name, or empty.
  std::string_view header(std::string_view name) const noexcept;
  std::string_view path() const noexcept { return std::string_view(target).substr(0, target.find('?')); }
  // The raw value of a query parameter, or empty.
  std::string_view query(std::string_view name) const noexcept;
};

struct http_response {
  int status = 200;
  header_list headers;
  std::string content_type = "application/json";
  std::string body;
};

http_response json_response(std::string body, int status = 200);
http_response error_response(const wire_fault& fault);

// How the bytes of one answer are framed on its connection.
struct http_framing {
  int version = 11;
  bool keep_alive = true;
  bool head_only = false; // the request was HEAD
  std::string request_id;
  header_list extra; // CORS and the like, on every answer of this exchange
};

// Head and body with Content-Length.
void append_response(std::string& out, const http_response& response, const http_framing& framing);
// The head of a Server-Sent Events stream; chunked for HTTP/1.1, ended by the connection's close for HTTP/1.0.
void append_stream_head(std::string& out, const http_framing& framing);
void append_stream_bytes(std::string& out, std::string_view bytes, const http_framing& framing);
void append_stream_end(std::string& out, const http_framing& framing);

// %41 -> A; what is no escape stays as it is.
std::string decode_percent(std::string_view text);

// RFC 9110's date of now, made once a second.
std::string http_date();

} // namespace troupe
