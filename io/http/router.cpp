#include "io/http/router.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "config/limits.hpp"
#include "io/prepared_response.hpp"
#include "io/web/web_files.hpp"
#include "io/wire/chat_answer.hpp"
#include "io/wire/chat_request.hpp"
#include "io/wire/completion.hpp"
#include "io/wire/json_writer.hpp"
#include "io/wire/responses_request.hpp"

namespace troupe {
namespace {

enum class route { none, file, health, metrics, models, model, chat, completions, responses, stored_response, echo };

struct matched_route {
  route kind = route::none;
  std::string_view methods; // what Allow says
  std::string_view id;      // the last part of the path, where the route has one
};

matched_route match(std::string_view path, bool echo) {
  const auto under = [&](std::string_view prefix) {
    return path.size() > prefix.size() && path.substr(0, prefix.size()) == prefix;
  };
  if (path == "/health")
    return {route::health, "GET, HEAD", {}};
  if (path == "/metrics")
    return {route::metrics, "GET, HEAD", {}};
  if (path == "/v1/models")
    return {route::models, "GET, HEAD", {}};
  if (under("/v1/models/"))
    return {route::model, "GET, HEAD", path.substr(11)};
  if (path == "/v1/chat/completions")
    return {route::chat, "POST", {}};
  if (path == "/v1/completions")
    return {route::completions, "POST", {}};
  if (path == "/v1/responses")
    return {route::responses, "GET, POST", {}};
  if (under("/v1/responses/") && path.find('/', 14) == std::string_view::npos)
    return {route::stored_response, "GET, DELETE", path.substr(14)};
  if (echo && path == "/__echo")
    return {route::echo, "GET", {}};
  if (find_web_file(path))
    return {route::file, "GET, HEAD", {}};
  return {};
}

bool allows(std::string_view methods, std::string_view method) {
  for (std::size_t at = methods.find(method); at != std::string_view::npos; at = methods.find(method, at + 1)) {
    const bool from = at == 0 || methods[at - 1] == ' ';
    const bool to = at + method.size() == methods.size() || methods[at + method.size()] == ',';
    if (from && to)
      return true;
  }
  return false;
}

bool wants_websocket(const http_request& request) {
  return request.method == "GET" && ascii_lower(request.header("upgrade")) == "websocket";
}

// RFC 6455: 16 bytes in base64.
bool valid_socket_key(std::string_view key) {
  return key.size() == 24 && key.substr(22) == "==" && std::all_of(key.begin(), key.begin() + 22, [](char c) {
           return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '/';
         });
}

http_response not_allowed(const http_request& request, std::string_view methods) {
  http_response response = error_response(
      {errc::not_found, request.method + " is not allowed here; use " + std::string(methods) + ".", {}, "method_not_allowed"});
  response.status = 405;
  response.headers.emplace_back("allow", std::string(methods));
  return response;
}

http_response upgrade_required() {
  http_response response =
      error_response({errc::invalid_argument, "This is a WebSocket; send an upgrade.", {}, "upgrade_required"});
  response.status = 426;
  response.headers.emplace_back("upgrade", "websocket");
  return response;
}

route_reply upgrade(const http_request& request, socket_upgrade wanted) {
  if (!wants_websocket(request))
    return upgrade_required();
  if (!valid_socket_key(request.header("sec-websocket-key")))
    return error_response({errc::invalid_argument, "Sec-WebSocket-Key must be 16 bytes in base64.", {}, "invalid_handshake"});
  return wanted;
}

http_response preflight(const http_request& request, std::string_view methods) {
  http_response response;
  response.status = 204;
  response.headers.emplace_back("allow", std::string(methods) + ", OPTIONS");
  if (!request.header("origin").empty()) {
    response.headers.emplace_back("access-control-allow-methods", std::string(methods));
    const std::string_view wanted = request.header("access-control-request-headers");
    response.headers.emplace_back("access-control-allow-headers",
                                  wanted.empty() ? "authorization, content-type" : std::string(wanted));
    response.headers.emplace_back("access-control-max-age", "600");
  }
  return response;
}

http_response file_response(const web_file& file) {
  http_response response;
  response.content_type = file.content_type;
  response.body = file.body;
  response.headers.emplace_back("cache-control", "no-cache");
  // The pages run their own scripts and talk to this server; nothing else.
  response.headers.emplace_back("content-security-policy",
                                "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
                                "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
  response.headers.emplace_back("referrer-policy", "no-referrer");
  return response;
}

wire_fault unknown_response(std::string_view id) {
  return {errc::not_found, "Response with id '" + std::string(id) + "' not found.", "response_id", "response_not_found"};
}

void write_model(json_writer& w, std::string_view id, const served_model& model) {
  w.begin_object().string("id", id).string("object", "model").integer("created", model.created);
  w.string("owned_by", "troupe").integer("max_model_len", model.context_tokens).end_object();
}

} // namespace

std::optional<http_response> router::screen(const http_request& head) const {
  if (const auto fault = core_.access.check_source(head))
    return error_response(*fault);
  const matched_route matched = match(head.path(), core_.options.echo_route);
  if (head.method == "OPTIONS")
    return preflight(head, matched.kind == route::none ? "GET, HEAD, POST, DELETE" : matched.methods);
  // Files and health hold no secret, and a browser can't send a key with its first request.
  if (matched.kind != route::file && matched.kind != route::health) {
    std::string tenant;
    if (const auto fault = core_.access.check_key(head, tenant))
      return error_response(*fault);
  }
  if (matched.kind == route::none)
    return error_response({errc::not_found, "There is no " + std::string(head.path()) + " here.", {}, "route_not_found"});
  if (!allows(matched.methods, head.method))
    return not_allowed(head, matched.methods);
  if (const std::string coding = ascii_lower(head.header("transfer-encoding")); !coding.empty() && coding != "chunked") {
    http_response response =
        error_response({errc::unsupported, "Of transfer codings only 'chunked' is known.", {}, "unsupported_transfer_coding"});
    response.status = 501;
    return response;
  }
  if (const std::string encoding = ascii_lower(head.header("content-encoding")); !encoding.empty() && encoding != "identity") {
    http_response response =
        error_response({errc::unsupported, "The body must not be compressed.", {}, "unsupported_encoding"});
    response.status = 415;
    return response;
  }
  return std::nullopt;
}

route_reply router::handle(const http_request& request) const {
  const matched_route matched = match(request.path(), core_.options.echo_route);
  switch (matched.kind) {
  case route::health: return health();
  case route::metrics: {
    http_response response = json_response(core_.metrics_text());
    response.content_type = "text/plain; version=0.0.4; charset=utf-8";
    return response;
  }
  case route::models: return models();
  case route::model: return model(matched.id);
  case route::chat: return handle_chat(request);
  case route::completions: return handle_completion(request);
  case route::responses: return handle_responses(request);
  case route::stored_response: return handle_stored_response(request, matched.id);
  case route::echo: return upgrade(request, {socket_kind::echo, {}, {}});
  case route::file: return file_response(*find_web_file(request.path()));
  case route::none: break;
  }
  return error_response({errc::not_found, "There is no such route.", {}, "route_not_found"});
}

std::string router::tenant_of(const http_request& request) const {
  std::string tenant;
  (void)core_.access.check_key(request, tenant);
  return tenant;
}

route_reply router::handle_chat(const http_request& request) const {
  chat_request parsed;
  if (const auto fault = parse_chat_request(request.body, parsed))
    return error_response(*fault);
  if (!core_.knows_model(parsed.model))
    return error_response(unknown_model(parsed.model));
  const int context = core_.port.model().context_tokens;
  const int longest = std::min(parsed.generation.max_tokens.value_or(context), context);
  if (parsed.choices > 1 && longest > limits::choices_tokens_max / parsed.choices)
    return error_response({errc::invalid_argument,
                           "'n' times 'max_tokens' must be at most " + std::to_string(limits::choices_tokens_max) + ", not " +
                               std::to_string(parsed.choices) + " times " + std::to_string(longest) + ".",
                           "n",
                           {}});
  parsed.generation.tenant = tenant_of(request);
  const chat_answer_options answer{parsed.stream, parsed.include_usage, parsed.generation.sampling.logprobs, parsed.choices};
  const auto bytes = bytes_of(parsed.generation) * static_cast<std::size_t>(parsed.choices);
  return generation_job{std::move(parsed.generation), make_chat_encoder(core_.identify("chatcmpl-"), answer), bytes, parsed.choices};
}

route_reply router::handle_completion(const http_request& request) const {
  completion_request parsed;
  if (const auto fault = parse_completion_request(request.body, parsed))
    return error_response(*fault);
  if (!core_.knows_model(parsed.model))
    return error_response(unknown_model(parsed.model));
  parsed.generation.tenant = tenant_of(request);
  const auto bytes = bytes_of(parsed.generation);
  return generation_job{std::move(parsed.generation),
                        make_completion_encoder(core_.identify("cmpl-"), {parsed.stream, parsed.include_usage}), bytes};
}

route_reply router::handle_responses(const http_request& request) const {
  const std::string tenant = tenant_of(request);
  if (request.method == "GET")
    return upgrade(request, {socket_kind::responses, chosen_subprotocol(request.header("sec-websocket-protocol")), tenant});
  responses_request parsed;
  if (const auto fault = parse_responses_request(request.body, parsed))
    return error_response(*fault);
  prepared_response prepared;
  if (const auto fault = prepare_response(core_, nullptr, tenant, std::move(parsed), prepared))
    return error_response(*fault);
  const auto bytes = bytes_of(prepared);
  return generation_job{std::move(prepared.generation), make_responses_encoder(core_, std::move(prepared)), bytes};
}

route_reply router::handle_stored_response(const http_request& request, std::string_view id) const {
  const std::string tenant = tenant_of(request);
  if (request.method == "DELETE")
    return erase_job{std::string(id), tenant};
  if (request.query("stream") == "true")
    return error_response({errc::unsupported, "A stored response can't be streamed again.", "stream", {}});
  auto json = core_.responses.json(id, tenant);
  return json ? json_response(std::move(*json)) : error_response(unknown_response(id));
}

std::optional<http_response> router::erase(const erase_job& job, written_fn keeper) const {
  switch (core_.responses.erase(job.id, job.tenant, std::move(keeper))) {
  case store_answer::unknown: return error_response(unknown_response(job.id));
  case store_answer::done: return erased(job, {});
  case store_answer::under_way: break;
  }
  return std::nullopt;
}

http_response router::erased(const erase_job& job, const result<void>& outcome) const {
  if (!outcome)
    return error_response(to_wire(fail(outcome.fault().code, "The response is forgotten, but its record could not be erased and may "
                                                             "come back with the next start: " + outcome.fault().message)));
  std::string body;
  json_writer(body).begin_object().string("id", job.id).string("object", "response").boolean("deleted", true).end_object();
  return json_response(std::move(body));
}

http_response router::health() const {
  std::string why;
  const health_state state = core_.draining ? health_state::draining : core_.port.health(why);
  std::string_view name = "ok";
  switch (state) {
  case health_state::ready: break;
  case health_state::starting: name = "starting"; break;
  case health_state::draining: name = "draining"; break;
  case health_state::failing: name = "failing"; break;
  }
  std::string body;
  json_writer w(body);
  w.begin_object().string("status", name);
  if (!why.empty())
    w.string("why", why);
  w.end_object();
  http_response response = json_response(std::move(body), state == health_state::ready ? 200 : 503);
  response.headers.emplace_back("cache-control", "no-store");
  return response;
}

http_response router::models() const {
  const served_model served = core_.port.model();
  std::string body;
  json_writer w(body);
  w.begin_object().string("object", "list").key("data").begin_array();
  write_model(w, core_.model_name(), served);
  w.end_array().end_object();
  return json_response(std::move(body));
}

http_response router::model(std::string_view id) const {
  const std::string name = decode_percent(id);
  if (!core_.knows_model(name))
    return error_response(unknown_model(name));
  std::string body;
  json_writer w(body);
  write_model(w, name, core_.port.model());
  return json_response(std::move(body));
}

} // namespace troupe
