// Who may talk to the edge: Host, Origin and key of a request, checked before its body is read.
//
// Owns the rules, made once at the start. Promises: a page of another site can neither read from nor write to a server on
// loopback (DNS rebinding: Host must be a loopback name; cross-site requests: Origin must be the server's own or allowed);
// keys are compared in time that does not depend on where they differ. Immutable; any thread.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "io/http/message.hpp"

namespace troupe {

struct access_options {
  std::string host;                         // what the server is bound to
  bool loopback = true;                     // and whether only this machine reaches it
  std::vector<std::string> allowed_origins; // "https://chat.example.com", or "*"
  std::vector<std::string> api_keys;        // empty: none is asked for
};

// localhost, 127.0.0.0/8 or ::1.
bool is_loopback_host(std::string_view host) noexcept;

class access_rules {
public:
  explicit access_rules(access_options options) : options_(std::move(options)) {}

  // Host and Origin.
  std::optional<wire_fault> check_source(const http_request& request) const;
  // The key, from Authorization or the WebSocket subprotocol. Sets `tenant`, a name that does not reveal the key.
  std::optional<wire_fault> check_key(const http_request& request, std::string& tenant) const;
  // What a browser needs to read the answer across sites; nothing for same-site and disallowed origins.
  header_list cors_headers(const http_request& request) const;

private:
  bool origin_allowed(std::string_view origin, std::string_view host) const;

  access_options options_;
};

// The first subprotocol offered that is safe to select: never the one that carries a key. Empty: none.
std::string chosen_subprotocol(std::string_view offered);

} // namespace troupe
