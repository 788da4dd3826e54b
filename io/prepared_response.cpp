#include "io/prepared_response.hpp"

#include "config/limits.hpp"

namespace troupe {
namespace {

class responses_encoder final : public body_encoder {
public:
  responses_encoder(edge_core& core, prepared_response prepared) : core_(core), prepared_(std::move(prepared)) {}

  bool streams() const noexcept override { return prepared_.streams; }

  void keep_with(written_fn keeper) override { keeper_ = std::move(keeper); }
  bool keeping() const noexcept override { return keeping_; }

  void encode(const generation_event& event, std::string& body, int) override {
    events_.clear();
    prepared_.stream->consume(event, events_);
    if (prepared_.store && prepared_.stream->continuable())
      keeping_ = core_.responses.put(to_stored(prepared_), std::move(keeper_)) == store_answer::under_way;
    if (keeping_) {
      end_ = std::move(events_.back());
      events_.pop_back();
    }
    write(body);
  }

  void kept(const result<void>& outcome, std::string& body) override {
    keeping_ = false;
    events_.clear();
    if (outcome)
      events_.push_back(std::move(end_));
    else
      prepared_.stream->fail_instead(outcome.fault(), events_);
    write(body);
  }

private:
  void write(std::string& body) {
    if (prepared_.streams)
      for (const response_event& e : events_)
        append_sse(body, e.type, e.json);
    else if (prepared_.stream->ended() && !keeping_)
      body = prepared_.stream->object_json();
  }

  edge_core& core_;
  prepared_response prepared_;
  written_fn keeper_;
  bool keeping_ = false;
  response_event end_; // held back meanwhile
  std::vector<response_event> events_;
};

} // namespace

std::size_t bytes_of(const prepared_response& prepared) noexcept { return 2 * bytes_of(prepared.generation); }

std::optional<wire_fault> prepare_response(edge_core& core, const response_store* local, const std::string& tenant,
                                           responses_request request, prepared_response& out) {
  if (!core.knows_model(request.model))
    return unknown_model(request.model);
  const std::string& previous = request.echo.previous_response_id;
  if (!previous.empty()) {
    auto found = local ? local->conversation(previous, tenant) : std::nullopt;
    if (!found)
      found = core.responses.conversation(previous, tenant);
    if (!found)
      return wire_fault{errc::invalid_argument, "Previous response with id '" + previous + "' not found.",
                        "previous_response_id", "previous_response_not_found"};
    out.conversation = std::move(*found);
  }
  for (chat_message& message : request.input)
    out.conversation.push_back(std::make_shared<const chat_message>(std::move(message)));
  if (out.conversation.size() > static_cast<std::size_t>(limits::messages_max))
    return wire_fault{
        errc::too_large, "The conversation has more than " + std::to_string(limits::messages_max) + " messages.", "input", {}};
  std::size_t bytes = 0;
  for (const auto& message : out.conversation)
    bytes += text_bytes(*message);
  if (bytes > limits::conversation_bytes_max)
    return wire_fault{errc::too_large,
                      "The conversation has more than " + std::to_string(limits::conversation_bytes_max) + " bytes.",
                      "input",
                      {}};
  out.generation = std::move(request.generation);
  out.generation.tenant = tenant;
  // Instructions hold for this response alone, as OpenAI has it: they are not part of the conversation.
  if (request.echo.instructions)
    out.generation.messages.push_back({"system", *request.echo.instructions, {}, {}, {}});
  for (const auto& message : out.conversation)
    out.generation.messages.push_back(*message);
  if (out.generation.messages.empty())
    return wire_fault{errc::invalid_argument, "'input' must not be empty.", "input", {}};
  out.tenant = tenant;
  out.store = request.echo.store;
  out.streams = request.stream;
  out.stream = std::make_unique<responses_stream>(core.identify("resp_"), std::move(request.echo), std::move(request.stream_id),
                                                  [&core](std::string_view prefix) { return core.make_id(prefix); });
  return std::nullopt;
}

stored_response to_stored(const prepared_response& prepared) {
  stored_response stored{prepared.stream->id(), prepared.tenant, prepared.conversation, prepared.stream->object_json()};
  if (prepared.stream->has_output())
    stored.conversation.push_back(std::make_shared<const chat_message>(prepared.stream->output_message()));
  return stored;
}

std::unique_ptr<body_encoder> make_responses_encoder(edge_core& core, prepared_response prepared) {
  return std::make_unique<responses_encoder>(core, std::move(prepared));
}

} // namespace troupe
