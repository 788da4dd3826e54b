// Routing and the Responses socket's session, driven without sockets against a port that the test plays itself.
#include <doctest/doctest.h>

#include "config/limits.hpp"
#include "io/http/router.hpp"
#include "io/prepared_response.hpp"
#include "io/responses_socket.hpp"
#include "tests/support/hand_port.hpp"
#include "tests/support/json_text.hpp"

using namespace troupe;
using troupe::testing::hand_port;
using troupe::testing::json_at;

namespace {

struct edge_under_test {
  explicit edge_under_test(edge_options options = {}) : core(std::move(options), true, port, {}), routes(core) {}

  http_request request(std::string method, std::string target, std::string body = {}, header_list headers = {}) {
    http_request out{std::move(method), std::move(target), std::move(headers), std::move(body), 11, true};
    out.headers.emplace_back("host", "localhost:8000");
    return out;
  }
  http_response answer(const http_request& r) {
    if (auto screened = routes.screen(r))
      return *screened;
    route_reply reply = routes.handle(r);
    if (const auto* erasing = std::get_if<erase_job>(&reply))
      return *routes.erase(*erasing, nullptr);
    REQUIRE(std::holds_alternative<http_response>(reply));
    return std::get<http_response>(reply);
  }

  hand_port port;
  edge_core core;
  router routes;
};

std::string header_of(const http_response& response, std::string_view name) {
  for (const auto& [key, value] : response.headers)
    if (key == name)
      return value;
  return {};
}

// A socket's session with its inbox; the connection is the test.
struct socket_under_test : edge_under_test {
  explicit socket_under_test(std::string tenant = {}, edge_options options = {}) : edge_under_test(std::move(options)) {
    inbox = std::make_shared<event_inbox>(1 << 20, core.answers, [] {});
    session = make_responses_socket(core, inbox, std::move(tenant));
  }
  std::vector<std::string> say(std::string_view text) {
    socket_output out;
    session->on_message(text, false, out);
    return frames(out);
  }
  // The events pushed so far, through the session.
  std::vector<std::string> events() {
    std::vector<run_event> waiting;
    inbox->take(waiting);
    socket_output out;
    for (run_event& e : waiting)
      session->on_event(e, out);
    return frames(out);
  }
  std::vector<std::string> frames(const socket_output& out) {
    std::vector<std::string> texts;
    for (const socket_frame& frame : out.frames)
      texts.push_back(frame.payload);
    closed = out.close;
    return texts;
  }
  void finish(std::size_t request, const std::string& text) {
    port.sinks[request]->push(generation_started{});
    port.sinks[request]->push(text_delta{text, {}});
    port.sinks[request]->push(generation_finished{finish_reason::stop, {}});
  }
  std::shared_ptr<event_inbox> inbox;
  std::unique_ptr<socket_session> session;
  std::optional<socket_close> closed;
};

} // namespace

TEST_CASE("health tells the runtime's state by its status") {
  edge_under_test edge;
  CHECK(edge.answer(edge.request("GET", "/health")).status == 200);
  edge.port.state = health_state::starting;
  edge.port.reason = "loading";
  const http_response starting = edge.answer(edge.request("GET", "/health"));
  CHECK(starting.status == 503);
  CHECK(json_at(starting.body, "/status") == "starting");
  CHECK(json_at(starting.body, "/why") == "loading");
  edge.port.state = health_state::ready;
  edge.core.draining = true;
  CHECK(json_at(edge.answer(edge.request("GET", "/health")).body, "/status") == "draining");
}

TEST_CASE("models are listed and found by name, escaped or not, and by their alias") {
  edge_options options;
  options.model_alias = "house";
  edge_under_test edge(options);
  const http_response list = edge.answer(edge.request("GET", "/v1/models"));
  CHECK(json_at(list.body, "/object") == "list");
  CHECK(json_at(list.body, "/data/0/id") == "house");
  CHECK(json_at(list.body, "/data/0/object") == "model");
  CHECK(json_at(list.body, "/data/0/created") == "1700000000");
  CHECK(json_at(edge.answer(edge.request("GET", "/v1/models/house")).body, "/id") == "house");
  CHECK(json_at(edge.answer(edge.request("GET", "/v1/models/org%2Fmodel")).body, "/id") == "org/model");
  CHECK(edge.answer(edge.request("GET", "/v1/models/org/model")).status == 200);
  const http_response unknown = edge.answer(edge.request("GET", "/v1/models/nope"));
  CHECK(unknown.status == 404);
  CHECK(json_at(unknown.body, "/error/code") == "model_not_found");
}

TEST_CASE("unknown paths and methods are refused in OpenAI's shape") {
  edge_under_test edge;
  const http_response missing = edge.answer(edge.request("GET", "/nope"));
  CHECK(missing.status == 404);
  CHECK(json_at(missing.body, "/error/type") == "invalid_request_error");
  const http_response wrong = edge.answer(edge.request("PUT", "/v1/chat/completions"));
  CHECK(wrong.status == 405);
  CHECK(header_of(wrong, "allow") == "POST");
  CHECK(edge.answer(edge.request("GET", "/__echo")).status == 404);
  CHECK(edge.answer(edge.request("GET", "/v1/responses")).status == 426);
  for (const char* key : {"", "abc", "dGhlIHNhbXBsZSBub25jZQ=", "dGhlIHNhbXBsZSBub25j*Q=="})
    CHECK(
        edge.answer(edge.request("GET", "/v1/responses", {}, {{"upgrade", "websocket"}, {"sec-websocket-key", key}})).status ==
        400);
  CHECK(edge.answer(edge.request("POST", "/v1/chat/completions", "{}", {{"content-encoding", "gzip"}})).status == 415);
}

TEST_CASE("the page comes with a policy that lets nothing else in") {
  edge_under_test edge;
  const http_response page = edge.answer(edge.request("GET", "/"));
  CHECK(page.status == 200);
  CHECK(page.content_type == "text/html; charset=utf-8");
  CHECK(page.body.find("<!doctype html>") == 0);
  CHECK(header_of(page, "content-security-policy").find("default-src 'none'") != std::string::npos);
  CHECK(page.body.find("http://") == std::string::npos);
  CHECK(page.body.find("https://") == std::string::npos);
  CHECK(edge.answer(edge.request("GET", "/chat.js")).content_type == "text/javascript; charset=utf-8");
  CHECK(edge.answer(edge.request("GET", "/chat.js")).body.find("innerHTML") == std::string::npos);
}

TEST_CASE("with keys set all but health and the page's files ask for one") {
  edge_options options;
  options.api_keys = {"k"};
  edge_under_test edge(options);
  for (const char* target : {"/v1/models", "/metrics", "/nope", "/v1/responses/x"})
    CHECK(edge.answer(edge.request("GET", target)).status == 401);
  CHECK(edge.answer(edge.request("GET", "/health")).status == 200);
  CHECK(edge.answer(edge.request("GET", "/")).status == 200);
  CHECK(edge.answer(edge.request("GET", "/metrics", {}, {{"authorization", "Bearer k"}})).status == 200);
  const route_reply reply = edge.routes.handle(edge.request(
      "POST", "/v1/chat/completions", R"({"messages":[{"role":"user","content":"x"}]})", {{"authorization", "Bearer k"}}));
  CHECK(!std::get<generation_job>(reply).request.tenant.empty());
}

TEST_CASE("a browser of an allowed origin may ask first, others may not") {
  edge_options options;
  options.allowed_origins = {"https://chat.example"};
  edge_under_test edge(options);
  const http_response allowed =
      edge.answer(edge.request("OPTIONS", "/v1/chat/completions", {},
                               {{"origin", "https://chat.example"}, {"access-control-request-headers", "authorization"}}));
  CHECK(allowed.status == 204);
  CHECK(header_of(allowed, "access-control-allow-methods") == "POST");
  CHECK(header_of(allowed, "access-control-allow-headers") == "authorization");
  CHECK(edge.answer(edge.request("OPTIONS", "/v1/chat/completions", {}, {{"origin", "https://evil.example"}})).status == 403);
  CHECK(edge.answer(edge.request("POST", "/v1/chat/completions", "{}", {{"origin", "https://evil.example"}})).status == 403);
}

TEST_CASE("metrics are the runtime's and the edge's") {
  edge_under_test edge;
  const http_response metrics = edge.answer(edge.request("GET", "/metrics"));
  CHECK(metrics.body.find("fake 1\n") == 0);
  CHECK(metrics.body.find("\ntroupe_edge_connections 0\n") != std::string::npos);
  CHECK(metrics.content_type == "text/plain; version=0.0.4; charset=utf-8");
}

TEST_CASE("an unknown model is refused before anything runs") {
  edge_under_test edge;
  const std::pair<const char*, const char*> requests[] = {
      {"/v1/chat/completions", R"({"model":"nope","messages":[{"role":"user","content":"x"}]})"},
      {"/v1/completions", R"({"model":"nope","prompt":"x"})"},
      {"/v1/responses", R"({"model":"nope","input":"x"})"},
  };
  for (const auto& [target, body] : requests) {
    const http_response refused = edge.answer(edge.request("POST", target, body));
    CHECK(refused.status == 404);
    CHECK(json_at(refused.body, "/error/code") == "model_not_found");
    CHECK(edge.port.requests.empty());
  }
}

TEST_CASE("a chat may have several choices, within the bound of all their tokens") {
  edge_under_test edge;
  const auto ask = [&](const std::string& members) {
    return edge.routes.handle(
        edge.request("POST", "/v1/chat/completions", R"({"messages":[{"role":"user","content":"x"}],)" + members + "}"));
  };
  CHECK(std::get<generation_job>(ask(R"("n":4)")).choices == 4);
  CHECK(std::get<generation_job>(ask(R"("max_tokens":3)")).choices == 1);
  CHECK(std::get<http_response>(ask(R"("n":17)")).status == 400);
  edge.port.context_tokens = 1 << 18; // longer than any here: four fit
  CHECK(std::get<generation_job>(ask(R"("n":4)")).choices == 4);
  const http_response refused = std::get<http_response>(ask(R"("n":5)"));
  CHECK(refused.status == 400);
  CHECK(json_at(refused.body, "/error/param") == "n");
  CHECK(json_at(refused.body, "/error/message") == "'n' times 'max_tokens' must be at most 1048576, not 5 times 262144.");
  CHECK(std::get<generation_job>(ask(R"("n":5,"max_tokens":1000)")).choices == 5);
}

TEST_CASE("responses are stored, continued, read and deleted over HTTP") {
  edge_under_test edge;
  const auto create = [&](const std::string& body) {
    route_reply reply = edge.routes.handle(edge.request("POST", "/v1/responses", body));
    REQUIRE(std::holds_alternative<generation_job>(reply));
    return std::move(std::get<generation_job>(reply));
  };
  generation_job first = create(R"({"input":"my name is Ann","instructions":"be brief"})");
  REQUIRE(first.request.messages.size() == 2);
  CHECK(first.request.messages[0].role == "system");
  std::string body;
  first.encoder->encode(generation_started{}, body);
  first.encoder->encode(text_delta{"Hello Ann", {}}, body);
  first.encoder->encode(generation_finished{}, body);
  const std::string id = json_at(body, "/id");
  CHECK(json_at(body, "/output/0/content/0/text") == "Hello Ann");
  const generation_job second = create(R"({"input":"who am I?","previous_response_id":")" + id + "\"}");
  REQUIRE(second.request.messages.size() == 3); // the instructions were the first response's alone
  CHECK(second.request.messages[0].content == "my name is Ann");
  CHECK(second.request.messages[1].role == "assistant");
  CHECK(second.request.messages[1].content == "Hello Ann");
  CHECK(edge.answer(edge.request("GET", "/v1/responses/" + id)).body == body);
  CHECK(json_at(edge.answer(edge.request("DELETE", "/v1/responses/" + id)).body, "/deleted") == "true");
  CHECK(edge.answer(edge.request("GET", "/v1/responses/" + id)).status == 404);
  const http_response gone =
      edge.answer(edge.request("POST", "/v1/responses", R"({"input":"x","previous_response_id":")" + id + "\"}"));
  CHECK(gone.status == 400);
  CHECK(json_at(gone.body, "/error/code") == "previous_response_not_found");
  CHECK(json_at(gone.body, "/error/param") == "previous_response_id");
}

TEST_CASE("a short request that goes on from a long conversation counts with the conversation") {
  edge_under_test edge;
  const auto create = [&](const std::string& body) {
    route_reply reply = edge.routes.handle(edge.request("POST", "/v1/responses", body));
    return std::move(std::get<generation_job>(reply));
  };
  generation_job first = create(R"({"input":")" + std::string(50'000, 'x') + R"("})");
  CHECK(first.bytes >= 100'000); // what is generated from, and what is kept to go on from
  std::string body;
  first.encoder->encode(generation_started{}, body);
  first.encoder->encode(generation_finished{}, body);
  CHECK(create(R"({"input":"y","previous_response_id":")" + json_at(body, "/id") + "\"}").bytes >= 100'000);
  CHECK(create(R"({"input":"y"})").bytes < 2'000);
}

TEST_CASE("a response that is not to be stored is not, nor is one that failed") {
  edge_under_test edge;
  for (const char* input : {R"({"input":"x","store":false})", R"({"input":"x","stream":true})"}) {
    route_reply reply = edge.routes.handle(edge.request("POST", "/v1/responses", input));
    auto& job = std::get<generation_job>(reply);
    std::string body;
    job.encoder->encode(generation_started{}, body);
    if (job.encoder->streams())
      job.encoder->encode(generation_failed{{errc::device_failed, "Gone."}, {}}, body);
    else
      job.encoder->encode(generation_finished{}, body);
    CHECK(edge.core.responses.size() == 0);
  }
}

TEST_CASE("a socket answers response.create with the response's events") {
  socket_under_test s;
  CHECK(s.say(R"({"type":"response.create","model":"org/model","input":"hi"})").empty());
  REQUIRE(s.port.requests.size() == 1);
  s.finish(0, "Hello");
  const auto frames = s.events();
  REQUIRE(frames.size() == 9);
  CHECK(json_at(frames[0], "/type") == "response.created");
  CHECK(json_at(frames[8], "/type") == "response.completed");
  CHECK(json_at(frames[8], "/stream_id") == "<none>");
  CHECK(!s.closed);
}

TEST_CASE("a lane runs its responses in order, lanes run side by side and name themselves") {
  socket_under_test s;
  s.say(R"({"type":"response.create","input":"a1","stream_id":"a"})");
  s.say(R"({"type":"response.create","input":"a2","stream_id":"a"})");
  s.say(R"({"type":"response.create","input":"b1","stream_id":"b"})");
  REQUIRE(s.port.requests.size() == 2); // a2 waits
  CHECK(s.port.requests[1].messages[0].content == "b1");
  s.finish(1, "B");
  for (const std::string& frame : s.events())
    CHECK(json_at(frame, "/stream_id") == "b");
  CHECK(s.port.requests.size() == 2);
  s.finish(0, "A");
  s.events();
  REQUIRE(s.port.requests.size() == 3);
  CHECK(s.port.requests[2].messages[0].content == "a2");
}

TEST_CASE("a socket goes on from its own responses even when they were not stored") {
  socket_under_test s;
  s.say(R"({"type":"response.create","input":"one","store":false})");
  s.finish(0, "two");
  const std::string id = json_at(s.events().back(), "/response/id");
  CHECK(s.core.responses.size() == 0);
  s.say(R"({"type":"response.create","input":"three","store":false,"stream_id":"fork","previous_response_id":")" + id + "\"}");
  REQUIRE(s.port.requests.size() == 2);
  REQUIRE(s.port.requests[1].messages.size() == 3);
  CHECK(s.port.requests[1].messages[1].content == "two");
  const auto unknown = s.say(R"({"type":"response.create","input":"x","previous_response_id":"resp_x","stream_id":"q"})");
  REQUIRE(unknown.size() == 1);
  CHECK(json_at(unknown[0], "/type") == "error");
  CHECK(json_at(unknown[0], "/status") == "400");
  CHECK(json_at(unknown[0], "/error/code") == "previous_response_not_found");
  CHECK(json_at(unknown[0], "/stream_id") == "q");
}

TEST_CASE("what a socket's requests and its own responses hold is bounded for all sockets together") {
  edge_options options;
  options.memory.input_bytes = 100'000;
  options.memory.input_uncounted_bytes = 0;
  options.memory.socket_stored_bytes = 50'000;
  socket_under_test s({}, options);
  const auto create = [&](std::size_t bytes, const std::string& lane) {
    return s.say(R"({"type":"response.create","store":false,"stream_id":")" + lane + R"(","input":")" + std::string(bytes, 'x') + "\"}");
  };
  CHECK(create(30'000, "a").empty());
  CHECK(s.core.input.bytes() >= 60'000);
  const auto refused = create(30'000, "b");
  REQUIRE(refused.size() == 1);
  CHECK(json_at(refused[0], "/status") == "429");
  CHECK(create(5'000, "c").empty());
  // What was stored gives way, the oldest first.
  s.finish(0, "A");
  const std::string first = json_at(s.events().back(), "/response/id");
  s.finish(1, "C");
  s.events();
  for (std::size_t i = 2; i < 6; ++i) {
    REQUIRE(create(20'000, "a").empty());
    s.finish(i, "B");
    s.events();
    CHECK(s.core.socket_responses.bytes() <= 50'000);
    CHECK(s.core.input.bytes() == 0);
  }
  const auto gone = s.say(R"({"type":"response.create","input":"x","previous_response_id":")" + first + "\"}");
  REQUIRE(gone.size() == 1);
  CHECK(json_at(gone[0], "/error/code") == "previous_response_not_found");
  s.session.reset();
  CHECK(s.core.socket_responses.bytes() == 0);
}

TEST_CASE("generate false reads the prompt and gives an id to go on from") {
  socket_under_test s;
  s.say(R"({"type":"response.create","generate":false,"instructions":"long","input":[]})");
  REQUIRE(s.port.requests.size() == 1);
  CHECK(*s.port.requests[0].max_tokens == 0);
  s.port.sinks[0]->push(generation_started{});
  s.port.sinks[0]->push(generation_finished{finish_reason::length, {}});
  const auto frames = s.events();
  REQUIRE(frames.size() == 3);
  CHECK(json_at(frames[2], "/type") == "response.completed");
  s.say(R"({"type":"response.create","input":"x","previous_response_id":")" + json_at(frames[2], "/response/id") + "\"}");
  CHECK(s.port.requests.size() == 2);
}

TEST_CASE("bad messages get an error event with a status, and the socket stays") {
  socket_under_test s;
  for (const char* message : {"nonsense", "[]", "{}", R"({"type":"nope"})", R"({"type":"response.create"})",
                              R"({"type":"response.create","input":"x","model":"nope"})", R"({"type":"response.cancel"})"}) {
    CAPTURE(message);
    const auto frames = s.say(message);
    REQUIRE(frames.size() == 1);
    CHECK(json_at(frames[0], "/type") == "error");
    CHECK(json_at(frames[0], "/status") != "<none>");
    CHECK(!s.closed);
  }
  const auto steer = s.say(R"({"type":"response.steer","previous_response_id":"r","input":"go left"})");
  REQUIRE(steer.size() == 1);
  CHECK(json_at(steer[0], "/type") == "response.steer.failed");
  CHECK(json_at(steer[0], "/steer/previous_response_id") == "r");
  CHECK(json_at(steer[0], "/steer/input") == "go left");
  socket_output out;
  s.session->on_message("x", true, out);
  CHECK(out.close->code == close_code::unknown_data);
}

TEST_CASE("what the runtime refuses or fails before its start is an error event") {
  socket_under_test s;
  s.port.refusal = error{errc::queue_full, "Full."};
  const auto refused = s.say(R"({"type":"response.create","input":"x"})");
  REQUIRE(refused.size() == 1);
  CHECK(json_at(refused[0], "/status") == "429");
  s.port.refusal.reset();
  s.say(R"({"type":"response.create","input":"x"})");
  s.port.sinks[0]->push(generation_failed{{errc::context_full, "Too long."}, {}});
  const auto failed = s.events();
  REQUIRE(failed.size() == 1);
  CHECK(json_at(failed[0], "/status") == "400");
  CHECK(json_at(failed[0], "/error/code") == "context_length_exceeded");
}

TEST_CASE("response.cancel ends the named response or the lane's") {
  socket_under_test s;
  s.say(R"({"type":"response.create","input":"x","stream_id":"a"})");
  s.port.sinks[0]->push(generation_started{});
  const std::string id = json_at(s.events()[0], "/response/id");
  CHECK(json_at(s.say(R"({"type":"response.cancel","response_id":"other"})")[0], "/status") == "404");
  CHECK(s.say(R"({"type":"response.cancel","response_id":")" + id + "\"}").empty());
  CHECK(s.port.cancelled == std::vector<std::uint64_t>{1});
  CHECK(s.say(R"({"type":"response.cancel","stream_id":"a"})").empty());
  CHECK(s.port.cancelled.size() == 2);
  s.port.sinks[0]->push(generation_finished{finish_reason::cancelled, {}});
  CHECK(json_at(s.events().back(), "/response/status") == "cancelled");
}

TEST_CASE("lanes and their queues are bounded") {
  socket_under_test s;
  for (int i = 0; i < limits::websocket_lanes_max; ++i)
    CHECK(s.say(R"({"type":"response.create","input":"x","stream_id":"l)" + std::to_string(i) + "\"}").empty());
  CHECK(json_at(s.say(R"({"type":"response.create","input":"x","stream_id":"more"})")[0], "/status") == "429");
  for (int i = 0; i < limits::websocket_lane_queue_max; ++i)
    CHECK(s.say(R"({"type":"response.create","input":"x","stream_id":"l0"})").empty());
  const auto refused = s.say(R"({"type":"response.create","input":"x","stream_id":"l0"})");
  CHECK(json_at(refused[0], "/error/code") == "rate_limit_exceeded");
}

TEST_CASE("a socket whose peer left cancels all it runs, and events after that go nowhere") {
  socket_under_test s;
  s.say(R"({"type":"response.create","input":"x","stream_id":"a"})");
  s.say(R"({"type":"response.create","input":"x","stream_id":"b"})");
  s.session->on_gone();
  CHECK(s.port.cancelled.size() == 2);
  s.finish(0, "late");
  CHECK(s.events().empty());
}

TEST_CASE("a draining server ends a socket once its responses have ended") {
  socket_under_test s;
  s.say(R"({"type":"response.create","input":"x"})");
  s.say(R"({"type":"response.create","input":"y"})");
  socket_output out;
  s.session->on_drain(out);
  CHECK(!out.close);
  REQUIRE(out.frames.size() == 1); // the one that waits is refused
  CHECK(json_at(out.frames[0].payload, "/status") == "503");
  CHECK(json_at(s.say(R"({"type":"response.create","input":"z"})")[0], "/status") == "503");
  s.finish(0, "done");
  s.events();
  CHECK(s.closed->code == close_code::going_away);
}

TEST_CASE("an answer that makes no progress ends with a timeout, and its lane goes on") {
  socket_under_test s;
  s.say(R"({"type":"response.create","input":"x"})");
  s.say(R"({"type":"response.create","input":"y"})");
  const auto now = std::chrono::steady_clock::now();
  socket_output out;
  s.session->on_tick(now, out);
  s.session->on_tick(now + limits::answer_stall_deadline - std::chrono::seconds(1), out);
  CHECK(out.frames.empty());
  s.session->on_tick(now + limits::answer_stall_deadline + std::chrono::seconds(1), out);
  REQUIRE(out.frames.size() == 1);
  CHECK(json_at(out.frames[0].payload, "/error/code") == "timeout");
  s.finish(1, "done");
  CHECK(json_at(s.events().back(), "/type") == "response.completed");
}

TEST_CASE("a socket past its age ends with the error that clients know") {
  socket_under_test s;
  s.say(R"({"type":"response.create","input":"x"})");
  const auto later = std::chrono::steady_clock::now() + limits::websocket_life + std::chrono::seconds(1);
  socket_output out;
  s.session->on_tick(later, out);
  CHECK(!out.close); // a response still runs
  CHECK(json_at(s.say(R"({"type":"response.create","input":"y"})")[0], "/error/code") == "websocket_connection_limit_reached");
  s.finish(0, "done");
  const auto frames = s.events();
  CHECK(json_at(frames.back(), "/error/code") == "websocket_connection_limit_reached");
  CHECK(json_at(frames.back(), "/status") == "400");
  CHECK(s.closed->code == close_code::going_away);
}
