// Every way in which outside input or the world can fail, one sentence a value.
//
// io/wire/http_status.hpp maps these to HTTP and WebSocket codes in one place. Our own mistakes are not here: they fail a
// check (base/check.hpp).
#pragma once
#include <string_view>

namespace troupe {

enum class errc {
  ok = 0,
  invalid_argument,     // A field of the request has a wrong type or a value outside its range.
  unsupported,          // The request or file asks for something that this build does not do.
  not_found,            // The named thing (model, response, file, route) does not exist.
  model_format,         // A model, tokenizer or template file is malformed; the message names field and offset.
  context_full,         // Prompt and answer do not fit into the model's context.
  queue_full,           // The bounded queue refuses; try again later.
  no_memory,            // KV pages or host memory do not suffice for the request.
  cancelled,            // The client cancelled or went away.
  timeout,              // A deadline passed.
  unauthorized,         // No or a wrong key.
  forbidden,            // Origin or Host is not on the allow-list.
  too_large,            // Header, body, message or field exceeds its limit.
  shutting_down,        // The process drains and takes no new work.
  unavailable,          // A part died and is being restarted; try again.
  device_failed,        // The compute device reported an error.
  io_failed,            // The operating system refused a read, write, map or bind.
  internal,             // A defect of ours; the log has the details.
};

// The value's name as it stands above, for logs and for the `code` field of wire errors.
std::string_view name_of(errc code) noexcept;

} // namespace troupe
