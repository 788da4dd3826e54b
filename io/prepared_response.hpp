// A Responses request made ready to run, and its answer over HTTP. Plain functions; the connection's thread.
#pragma once
#include <memory>

#include "io/edge_core.hpp"
#include "io/http/answer.hpp"
#include "io/wire/responses_stream.hpp"

namespace troupe {

struct prepared_response {
  generation_request generation;
  std::unique_ptr<responses_stream> stream;
  shared_conversation conversation; // what the response builds on, and its own input
  std::string tenant;
  bool store = true;
  bool streams = false;
};

// Its memory: the messages are held once to generate from and once to go on from.
std::size_t bytes_of(const prepared_response& prepared) noexcept;

// Resolves the model and previous_response_id: in `local` first (a socket's own, may be null), then in the core's store.
std::optional<wire_fault> prepare_response(edge_core& core, const response_store* local, const std::string& tenant,
                                           responses_request request, prepared_response& out);

// What to keep of a response that ended.
stored_response to_stored(const prepared_response& prepared);

// SSE or one document, whichever the request asked for; keeps the response in the core's store.
std::unique_ptr<body_encoder> make_responses_encoder(edge_core& core, prepared_response prepared);

} // namespace troupe
