// Which request gets which answer.
//
// Refers to the server's core. Promises: screen() needs the head alone, so that a request that may not come in never has
// its body read; handle() never waits: it answers at once, or names the work to submit, or the upgrade to make. Stateless;
// any thread.
#pragma once
#include <memory>
#include <variant>

#include "io/edge_core.hpp"
#include "io/http/answer.hpp"
#include "io/http/message.hpp"

namespace troupe {

// Work for the runtime, and what makes its events an answer.
struct generation_job {
  generation_request request;
  std::unique_ptr<body_encoder> encoder;
  std::size_t bytes = 0; // that both hold
  int choices = 1;
};

enum class socket_kind { responses, echo };

struct socket_upgrade {
  socket_kind kind = socket_kind::responses;
  std::string subprotocol; // empty: none
  std::string tenant;
};

// A stored response to erase, where that may take its time.
struct erase_job {
  std::string id;
  std::string tenant;
};

using route_reply = std::variant<http_response, generation_job, socket_upgrade, erase_job>;

class router {
public:
  explicit router(edge_core& core) : core_(core) {}

  // A refusal or an answer that needs no body; nothing where handle() is to be called with the whole request.
  std::optional<http_response> screen(const http_request& head) const;
  route_reply handle(const http_request& request) const;
  // The answer where there is one at once, else `keeper` is told, and erased() makes the answer of that.
  std::optional<http_response> erase(const erase_job& job, written_fn keeper) const;
  http_response erased(const erase_job& job, const result<void>& outcome) const;

private:
  route_reply handle_chat(const http_request& request) const;
  route_reply handle_completion(const http_request& request) const;
  route_reply handle_responses(const http_request& request) const;
  route_reply handle_stored_response(const http_request& request, std::string_view id) const;
  http_response health() const;
  http_response models() const;
  http_response model(std::string_view id) const;
  // The tenant of a request whose key was checked.
  std::string tenant_of(const http_request& request) const;

  edge_core& core_;
};

} // namespace troupe
