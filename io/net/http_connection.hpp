// One HTTP/1.1 connection, from accept to close or upgrade.
//
// Owns the socket, the request being read and the answer being written. Promises: requests are answered one at a time and
// in order; the socket is watched for the peer's end all the time, and a peer that ends while its answer is generated has it
// cancelled at once; at most one write is in flight, and what piles up behind it goes out as one. Limits: header, body,
// read-ahead, send queue and deadlines of config/limits.hpp. Thread: its loop's.
#pragma once
#include "io/net/edge_loop.hpp"

namespace troupe {

// `over_cap`: the connection is one too many; it gets one 429 and ends.
void start_http_connection(edge_loop& loop, tcp::socket socket, bool over_cap);

} // namespace troupe
