// The Responses API over a WebSocket: response.create in, the response's events out.
//
// Owns the socket's lanes, what runs and waits in them, and the responses that only this socket may go on from
// (store:false). Promises: a lane's responses run one after another, lanes run side by side, and each event names its lane;
// a bad message gets an error event and the socket stays open. Limits: lanes, requests a lane, stored responses, life
// (config/limits.hpp). Thread: its connection's.
#pragma once
#include <memory>
#include <string>

#include "io/edge_core.hpp"
#include "io/socket_session.hpp"

namespace troupe {

std::unique_ptr<socket_session> make_responses_socket(edge_core& core, std::shared_ptr<event_inbox> inbox, std::string tenant);

} // namespace troupe
