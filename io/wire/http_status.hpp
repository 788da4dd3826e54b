// How a failure looks to a client: the one place that maps errc to HTTP status, OpenAI error type and code, and to
// WebSocket error events. Plain functions; any thread.
#pragma once
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace troupe {

// A failure on its way to a client: base/result.hpp's error, and which field of the request is at fault.
struct wire_fault {
  errc code = errc::ok;
  std::string message;
  std::string param;     // empty: none
  std::string wire_code; // empty: the errc's own

  explicit operator bool() const noexcept { return code != errc::ok; }
};

inline wire_fault to_wire(const error& e) {
  return {e.code, e.message, {}, {}};
}

struct http_failure {
  int status;
  std::string_view type; // error.type
  std::string_view code; // error.code
  int retry_after_s;     // 0: no Retry-After
};

http_failure http_failure_of(errc code) noexcept;
std::string_view http_reason(int status) noexcept;

// {"error":{"message","type","param","code"}}
std::string error_body(const wire_fault& fault);
// The inner object alone, as error events carry it.
std::string error_object(const wire_fault& fault);
// {"type":"error","status":...,"error":{...}[,"stream_id":...]} as a Responses socket sends it.
std::string error_event(const wire_fault& fault, std::string_view stream_id);

} // namespace troupe
