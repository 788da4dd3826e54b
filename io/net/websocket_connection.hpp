// One WebSocket, from the upgrade to its close.
//
// Owns the stream, its session and the frames that wait to be written. Promises: one write in flight; pings a silent peer
// and drops it when it stays silent; a peer that reads too slowly has its work cancelled and gets close 1013; the peer's end
// reaches the session at once. Limits: message size (1009), send queue, ping and write deadlines. Thread: its loop's.
#pragma once
#include "io/http/router.hpp"
#include "io/net/edge_loop.hpp"

namespace troupe {

void start_websocket_connection(edge_loop& loop, tcp::socket socket, const http_request& request, socket_upgrade upgrade);

} // namespace troupe
