#include "io/response_records.hpp"

#include <optional>

namespace troupe {
namespace {

std::optional<chat_message> read_message(std::string_view bytes) {
  record_reader in(bytes);
  chat_message message{in.text(), in.text(), in.text(), {}, in.text()};
  for (std::uint64_t calls = in.count(24); calls > 0; --calls) // three lengths at least
    message.tool_calls.push_back({in.text(), in.text(), in.text()});
  return in.complete() ? std::optional(std::move(message)) : std::nullopt;
}

std::optional<response_record> read_response(std::string_view bytes) {
  record_reader in(bytes);
  response_record response{in.text(), in.text(), in.text(), {}};
  for (std::uint64_t messages = in.count(8); messages > 0; --messages)
    response.messages.push_back(in.number());
  return in.complete() ? std::optional(std::move(response)) : std::nullopt;
}

} // namespace

std::string message_bytes(const chat_message& message) {
  record_writer out;
  out.text(message.role).text(message.content).text(message.reasoning).text(message.tool_call_id);
  out.number(message.tool_calls.size());
  for (const tool_call& call : message.tool_calls)
    out.text(call.id).text(call.name).text(call.arguments);
  return out.take();
}

std::string response_bytes(const response_record& response) {
  record_writer out;
  out.text(response.id).text(response.tenant).text(response.json).number(response.messages.size());
  for (const std::uint64_t number : response.messages)
    out.number(number);
  return out.take();
}

read_records read_responses(record_store& records, const log_sink& log) {
  read_records out;
  const auto read_messages = records.read(message_table, [&](std::string_view key, std::string_view value) {
    record_reader name(key);
    const std::uint64_t number = name.number();
    if (auto message = read_message(value); message && name.complete())
      out.messages.emplace(number, std::make_shared<const chat_message>(std::move(*message)));
  });
  const auto read_all = records.read(response_table, [&](std::string_view key, std::string_view value) {
    record_reader name(key);
    const std::uint64_t number = name.number();
    auto record = read_response(value);
    bool whole = record.has_value() && name.complete();
    stored_response response;
    for (std::size_t i = 0; whole && i < record->messages.size(); ++i) {
      const auto message = out.messages.find(record->messages[i]);
      whole = message != out.messages.end();
      if (whole)
        response.conversation.push_back(message->second);
    }
    if (!whole)
      return out.damaged.push_back(number);
    response.id = std::move(record->id);
    response.tenant = std::move(record->tenant);
    response.json = std::move(record->json);
    out.responses.emplace(number, std::move(response));
  });
  for (const auto* done : {&read_messages, &read_all})
    if (!*done)
      log_to(log, log_level::error, done->fault().message);
  if (!out.damaged.empty())
    log_to(log, log_level::warning,
           "records: " + std::to_string(out.damaged.size()) + " stored responses are damaged and forgotten");
  return out;
}

} // namespace troupe
