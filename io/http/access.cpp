#include "io/http/access.hpp"

#include <algorithm>
#include <charconv>

#include "base/text.hpp"

namespace troupe {
namespace {

constexpr std::string_view key_subprotocol = "openai-insecure-api-key.";

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t'))
    text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t'))
    text.remove_suffix(1);
  return text;
}

// Host without its port: "[::1]:8000" -> "[::1]".
std::string_view name_of_host(std::string_view host) {
  if (!host.empty() && host.front() == '[') {
    const std::size_t end = host.find(']');
    return end == std::string_view::npos ? host : host.substr(0, end + 1);
  }
  return host.substr(0, host.find(':'));
}

// "127." and three more numbers of at most 255; not a name that begins so.
bool is_loopback_address(std::string_view name) {
  int octets = 0;
  for (std::size_t begin = 0; begin <= name.size(); ++octets) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    unsigned value = 0;
    const auto [stop, code] = std::from_chars(name.data() + begin, name.data() + end, value);
    if (code != std::errc{} || stop != name.data() + end || end - begin > 3 || value > 255 || (octets == 0 && value != 127))
      return false;
    begin = end + 1;
  }
  return octets == 4;
}

bool valid_port_suffix(std::string_view suffix) {
  if (suffix.empty())
    return true;
  suffix.remove_prefix(1);
  return !suffix.empty() && suffix.size() <= 5 &&
         std::all_of(suffix.begin(), suffix.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool equal_in_constant_time(std::string_view given, std::string_view key) {
  unsigned difference = given.size() == key.size() ? 0u : 1u;
  for (std::size_t i = 0; i < key.size(); ++i) {
    const char c = i < given.size() ? given[i] : '\0';
    difference |= static_cast<unsigned>(static_cast<unsigned char>(c) ^ static_cast<unsigned char>(key[i]));
  }
  return difference == 0;
}

// FNV-1a: a stable name for metrics and cache salts, from which the key can't be read off at a glance.
std::string tenant_of(std::string_view key) {
  std::uint64_t hash = 0xcbf29ce484222325ull;
  for (const char c : key)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  static constexpr char digits[] = "0123456789abcdef";
  std::string out = "key-";
  for (int shift = 60; shift >= 0; shift -= 4)
    out += digits[(hash >> shift) & 15];
  return out;
}

// Calls f with each element of a comma-separated header.
template <class F>
void each_token(std::string_view list, F f) {
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    f(trim(list.substr(0, comma)));
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  }
}

} // namespace

bool is_loopback_host(std::string_view host) noexcept {
  const std::string name = ascii_lower(host);
  return name == "localhost" || name == "::1" || name == "[::1]" || is_loopback_address(name);
}

bool access_rules::origin_allowed(std::string_view origin, std::string_view host) const {
  const std::string wanted = ascii_lower(origin);
  for (const std::string& allowed : options_.allowed_origins)
    if (allowed == "*" || ascii_lower(allowed) == wanted)
      return true;
  const std::size_t scheme = wanted.find("://");
  return scheme != std::string::npos && !host.empty() && wanted.substr(scheme + 3) == ascii_lower(host);
}

std::optional<wire_fault> access_rules::check_source(const http_request& request) const {
  const std::string_view host = request.header("host");
  const auto hosts = std::count_if(request.headers.begin(), request.headers.end(),
                                   [](const auto& header) { return header.first == "host"; });
  if (hosts > 1) // RFC 9112 section 3.2
    return wire_fault{errc::invalid_argument, "There is more than one Host header.", {}, "repeated_host"};
  if (host.empty() && request.version >= 11)
    return wire_fault{errc::invalid_argument, "The Host header is missing.", {}, "missing_host"};
  if (options_.loopback && !host.empty()) {
    const std::string_view name = name_of_host(host);
    if ((!is_loopback_host(name) && ascii_lower(name) != ascii_lower(options_.host)) || !valid_port_suffix(host.substr(name.size())))
      return wire_fault{errc::forbidden, "The Host header does not name this machine.", {}, "host_not_allowed"};
  }
  const std::string_view origin = request.header("origin");
  if (!origin.empty() && !origin_allowed(origin, host))
    return wire_fault{errc::forbidden, "The Origin is not on the allow-list.", {}, "origin_not_allowed"};
  return std::nullopt;
}

std::optional<wire_fault> access_rules::check_key(const http_request& request, std::string& tenant) const {
  if (options_.api_keys.empty())
    return std::nullopt;
  std::string given;
  const std::string_view authorization = request.header("authorization");
  if (ascii_lower(authorization.substr(0, 7)) == "bearer ")
    given = trim(authorization.substr(7));
  else
    each_token(request.header("sec-websocket-protocol"), [&](std::string_view protocol) {
      if (protocol.substr(0, key_subprotocol.size()) == key_subprotocol)
        given = protocol.substr(key_subprotocol.size());
    });
  bool known = false;
  for (const std::string& key : options_.api_keys)
    known |= equal_in_constant_time(given, key);
  if (!known)
    return wire_fault{errc::unauthorized, given.empty() ? "No API key was given." : "Incorrect API key provided.", {}, {}};
  tenant = tenant_of(given);
  return std::nullopt;
}

header_list access_rules::cors_headers(const http_request& request) const {
  const std::string_view origin = request.header("origin");
  const std::string_view host = request.header("host");
  if (origin.empty() || !origin_allowed(origin, host))
    return {};
  return {{"access-control-allow-origin", std::string(origin)},
          {"vary", "Origin"},
          {"access-control-expose-headers", "x-request-id, retry-after"}};
}

std::string chosen_subprotocol(std::string_view offered) {
  std::string chosen;
  each_token(offered, [&](std::string_view protocol) {
    if (chosen.empty() &&
        (protocol == "realtime" || protocol.substr(0, 9) == "responses" || protocol == "openai-beta.responses.v1"))
      chosen = protocol;
  });
  return chosen;
}

} // namespace troupe
