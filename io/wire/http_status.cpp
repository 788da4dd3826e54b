#include "io/wire/http_status.hpp"

#include "io/wire/json_writer.hpp"

namespace troupe {
namespace {

constexpr std::string_view bad_request = "invalid_request_error";
constexpr std::string_view server_fault = "server_error";

void write_error(json_writer& w, const wire_fault& fault) {
  const http_failure failure = http_failure_of(fault.code);
  w.begin_object().string("message", fault.message).string("type", failure.type);
  if (fault.param.empty())
    w.null("param");
  else
    w.string("param", fault.param);
  w.string("code", fault.wire_code.empty() ? failure.code : std::string_view(fault.wire_code)).end_object();
}

} // namespace

http_failure http_failure_of(errc code) noexcept {
  switch (code) {
  case errc::ok: return {200, "", "", 0};
  case errc::invalid_argument: return {400, bad_request, "invalid_value", 0};
  case errc::unsupported: return {400, bad_request, "unsupported_parameter", 0};
  case errc::not_found: return {404, bad_request, "not_found", 0};
  case errc::context_full: return {400, bad_request, "context_length_exceeded", 0};
  case errc::too_large: return {413, bad_request, "request_too_large", 0};
  case errc::unauthorized: return {401, bad_request, "invalid_api_key", 0};
  case errc::forbidden: return {403, bad_request, "forbidden", 0};
  case errc::queue_full: return {429, "rate_limit_error", "rate_limit_exceeded", 1};
  case errc::timeout: return {408, "timeout_error", "timeout", 0};
  case errc::cancelled: return {499, "cancelled", "cancelled", 0};
  case errc::no_memory: return {503, server_fault, "no_memory", 2};
  case errc::shutting_down: return {503, server_fault, "shutting_down", 5};
  case errc::unavailable: return {503, server_fault, "unavailable", 1};
  case errc::model_format: return {500, server_fault, "model_format", 0};
  case errc::device_failed: return {500, server_fault, "device_failed", 0};
  case errc::io_failed: return {500, server_fault, "io_failed", 0};
  case errc::internal: return {500, server_fault, "internal_error", 0};
  }
  return {500, server_fault, "internal_error", 0};
}

std::string_view http_reason(int status) noexcept {
  switch (status) {
  case 100: return "Continue";
  case 101: return "Switching Protocols";
  case 200: return "OK";
  case 204: return "No Content";
  case 304: return "Not Modified";
  case 400: return "Bad Request";
  case 401: return "Unauthorized";
  case 403: return "Forbidden";
  case 404: return "Not Found";
  case 405: return "Method Not Allowed";
  case 408: return "Request Timeout";
  case 413: return "Content Too Large";
  case 415: return "Unsupported Media Type";
  case 426: return "Upgrade Required";
  case 429: return "Too Many Requests";
  case 431: return "Request Header Fields Too Large";
  case 499: return "Client Closed Request";
  case 500: return "Internal Server Error";
  case 503: return "Service Unavailable";
  case 505: return "HTTP Version Not Supported";
  default: return "Unknown";
  }
}

std::string error_object(const wire_fault& fault) {
  std::string out;
  json_writer w(out);
  write_error(w, fault);
  return out;
}

std::string error_body(const wire_fault& fault) {
  return "{\"error\":" + error_object(fault) + "}";
}

std::string error_event(const wire_fault& fault, std::string_view stream_id) {
  std::string out;
  json_writer w(out);
  w.begin_object().string("type", "error").integer("status", http_failure_of(fault.code).status);
  w.raw("error", error_object(fault));
  if (!stream_id.empty())
    w.string("stream_id", stream_id);
  w.end_object();
  return out;
}

} // namespace troupe
