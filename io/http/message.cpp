#include "io/http/message.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>

namespace troupe {
namespace {

void append_line(std::string& out, std::string_view name, std::string_view value) {
  out += name;
  out += ": ";
  // A value that carries a line break would end the header early.
  for (const char c : value)
    if (c != '\r' && c != '\n')
      out += c;
  out += "\r\n";
}

void append_head(std::string& out, int status, const http_framing& framing) {
  out += framing.version == 10 ? "HTTP/1.0 " : "HTTP/1.1 ";
  out += std::to_string(status);
  out += ' ';
  out += http_reason(status);
  out += "\r\n";
  append_line(out, "date", http_date());
  if (!framing.request_id.empty())
    append_line(out, "x-request-id", framing.request_id);
  if (!framing.keep_alive)
    append_line(out, "connection", "close");
  else if (framing.version == 10)
    append_line(out, "connection", "keep-alive");
  append_line(out, "x-content-type-options", "nosniff");
  for (const auto& [name, value] : framing.extra)
    append_line(out, name, value);
}

} // namespace

std::string_view http_request::header(std::string_view name) const noexcept {
  for (const auto& [key, value] : headers)
    if (key == name)
      return value;
  return {};
}

std::string_view http_request::query(std::string_view name) const noexcept {
  const std::size_t mark = target.find('?');
  if (mark == std::string::npos)
    return {};
  std::string_view rest = std::string_view(target).substr(mark + 1);
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    const std::size_t equals = pair.find('=');
    if (pair.substr(0, equals) == name)
      return equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1);
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
  }
  return {};
}

http_response json_response(std::string body, int status) {
  http_response response;
  response.status = status;
  response.body = std::move(body);
  return response;
}

http_response error_response(const wire_fault& fault) {
  const http_failure failure = http_failure_of(fault.code);
  http_response response = json_response(error_body(fault), failure.status);
  if (failure.retry_after_s > 0)
    response.headers.emplace_back("retry-after", std::to_string(failure.retry_after_s));
  if (failure.status == 401)
    response.headers.emplace_back("www-authenticate", "Bearer");
  return response;
}

void append_response(std::string& out, const http_response& response, const http_framing& framing) {
  append_head(out, response.status, framing);
  for (const auto& [name, value] : response.headers)
    append_line(out, name, value);
  if (response.status != 204) {
    append_line(out, "content-type", response.content_type);
    append_line(out, "content-length", std::to_string(response.body.size()));
  }
  out += "\r\n";
  if (!framing.head_only && response.status != 204)
    out += response.body;
}

void append_stream_head(std::string& out, const http_framing& framing) {
  append_head(out, 200, framing);
  append_line(out, "content-type", "text/event-stream; charset=utf-8");
  append_line(out, "cache-control", "no-cache");
  append_line(out, "x-accel-buffering", "no");
  if (framing.version != 10)
    append_line(out, "transfer-encoding", "chunked");
  out += "\r\n";
}

void append_stream_bytes(std::string& out, std::string_view bytes, const http_framing& framing) {
  if (bytes.empty()) // an empty chunk would end the stream
    return;
  if (framing.version == 10) {
    out += bytes;
    return;
  }
  std::array<char, 20> size{};
  const auto end = std::to_chars(size.data(), size.data() + size.size(), bytes.size(), 16);
  out.append(size.data(), end.ptr);
  out += "\r\n";
  out += bytes;
  out += "\r\n";
}

void append_stream_end(std::string& out, const http_framing& framing) {
  if (framing.version != 10)
    out += "0\r\n\r\n";
}

std::string decode_percent(std::string_view text) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0;
    out += escape ? static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2])) : text[i];
    i += escape ? 2 : 0;
  }
  return out;
}

std::string http_date() {
  thread_local std::time_t made_at = 0;
  thread_local std::string text;
  const std::time_t now = std::time(nullptr);
  if (now == made_at)
    return text;
  std::tm utc{};
  gmtime_r(&now, &utc);
  // Not strftime: its names follow the process's locale.
  static constexpr const char* days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto two = [](int value) { return std::string(value < 10 ? "0" : "") + std::to_string(value); };
  text = std::string(days[utc.tm_wday]) + ", " + two(utc.tm_mday) + " " + months[utc.tm_mon] + " " +
         std::to_string(utc.tm_year + 1900) + " " + two(utc.tm_hour) + ":" + two(utc.tm_min) + ":" + two(utc.tm_sec) + " GMT";
  made_at = now;
  return text;
}

} // namespace troupe
