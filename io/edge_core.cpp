#include "io/edge_core.hpp"

#include <chrono>
#include <random>

#include "base/process_memory.hpp"
#include "base/random.hpp"

namespace troupe {
namespace {

void append_hex(std::string& out, std::uint64_t value, int digits) {
  static constexpr char hex[] = "0123456789abcdef";
  for (int i = digits - 1; i >= 0; --i)
    out += hex[(value >> (4 * i)) & 15];
}

std::uint64_t random_key() {
  std::random_device device;
  return (static_cast<std::uint64_t>(device()) << 32) | device();
}

void append_metric(std::string& out, std::string_view name, std::string_view kind, std::string_view help, std::int64_t value) {
  out += "# HELP ";
  out.append(name).append(" ").append(help).append("\n# TYPE ").append(name).append(" ").append(kind).append("\n");
  out.append(name).append(" ").append(std::to_string(value)).append("\n");
}

} // namespace

edge_core::edge_core(edge_options chosen, bool loopback, edge_port& runtime, log_sink sink)
    : options(std::move(chosen)), port(runtime), log(std::move(sink)),
      access({options.host, loopback, options.allowed_origins, options.api_keys}),
      responses({static_cast<std::size_t>(limits::stored_responses_max), options.memory.stored_bytes}, options.records),
      input(options.memory.input_bytes, options.memory.input_uncounted_bytes),
      answers(options.memory.answer_bytes, options.memory.input_uncounted_bytes),
      socket_responses(options.memory.socket_stored_bytes, 0),
      id_key_(random_key()), id_mask_(random_key()) {
  responses.restore(log);
}

void edge_core::connection_ended() {
  const std::lock_guard lock(empty_mutex);
  if (--counters.connections <= 0)
    empty.notify_all();
}

std::string edge_core::make_id(std::string_view prefix) {
  const std::uint64_t n = id_counter_.fetch_add(1, std::memory_order_relaxed);
  std::string out(prefix);
  // random_at alone can be inverted; the other key's part hides it.
  append_hex(out, random_at(id_key_, 2 * n) ^ random_at(id_mask_, 2 * n), 16);
  append_hex(out, random_at(id_key_, 2 * n + 1) ^ random_at(id_mask_, 2 * n + 1), 8);
  return out;
}

std::string edge_core::model_name() const {
  return options.model_alias.empty() ? port.model().name : options.model_alias;
}

bool edge_core::knows_model(std::string_view name) const {
  return name.empty() || name == options.model_alias || name == port.model().name;
}

answer_identity edge_core::identify(std::string_view id_prefix) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return {make_id(id_prefix), model_name(), std::chrono::duration_cast<std::chrono::seconds>(now).count()};
}

std::string edge_core::metrics_text() const {
  std::string out = port.metrics_text();
  if (!out.empty() && out.back() != '\n')
    out += '\n';
  const auto add = [&](std::string_view name, std::string_view kind, std::string_view help, auto value) {
    append_metric(out, name, kind, help, static_cast<std::int64_t>(value));
  };
  add("troupe_edge_connections", "gauge", "Open connections.", counters.connections.load());
  add("troupe_edge_websockets", "gauge", "Open WebSockets.", counters.websockets.load());
  add("troupe_edge_connections_total", "counter", "Connections accepted.", counters.connections_total.load());
  add("troupe_edge_connections_refused_total", "counter", "Connections over the cap.",
      counters.connections_refused_total.load());
  add("troupe_edge_requests_total", "counter", "HTTP requests and WebSocket creates.", counters.requests_total.load());
  add("troupe_edge_refusals_total", "counter", "Requests answered with an error status.", counters.refusals_total.load());
  add("troupe_edge_disconnects_total", "counter", "Answers left by their client.", counters.disconnects_total.load());
  add("troupe_edge_overflows_total", "counter", "Clients dropped for reading too slowly.", counters.overflows_total.load());
  add("troupe_edge_input_bytes", "gauge", "Large requests that arrive or are being answered.", input.bytes());
  add("troupe_edge_answer_bytes", "gauge", "Large parts of answers that wait for their clients.", answers.bytes());
  add("troupe_edge_stored_responses", "gauge", "Responses kept for previous_response_id.", responses.size());
  add("troupe_edge_stored_response_bytes", "gauge", "Their size.", responses.bytes());
  add("troupe_edge_record_failures_total", "counter", "Writes of stored responses that the disk refused.",
      responses.failures());
  add("troupe_edge_socket_response_bytes", "gauge", "Responses that WebSockets keep for themselves.", socket_responses.bytes());
  const auto memory = memory_of_process();
  add("troupe_memory_limit_bytes", "gauge", "What memory.limit allows to be resident; 0: no limit.", options.memory_limit);
  add("troupe_memory_resident_bytes", "gauge", "What is resident now.", memory.resident_bytes);
  add("troupe_memory_peak_bytes", "gauge", "The most that was ever resident.", memory.peak_bytes);
  return out;
}

std::size_t bytes_of(const generation_request& request) noexcept {
  std::size_t bytes = request.prompt_tokens.size() * sizeof(token_id) + (request.prompt ? request.prompt->size() : 0);
  for (const auto& message : request.messages)
    bytes += sizeof message + text_bytes(message) + message.tool_calls.size() * sizeof(tool_call);
  for (const auto* texts : {&request.tools, &request.stop})
    for (const auto& text : *texts)
      bytes += sizeof text + text.size();
  return bytes;
}

wire_fault unknown_model(std::string_view name) {
  return {errc::not_found, "The model '" + std::string(name) + "' does not exist.", "model", "model_not_found"};
}

} // namespace troupe
