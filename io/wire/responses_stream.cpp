#include "io/wire/responses_stream.hpp"

#include <chrono>

#include "io/wire/http_status.hpp"
#include "io/wire/json_writer.hpp"

namespace troupe {
namespace {

std::int64_t unix_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

void write_response_usage(json_writer& w, const token_usage& usage) {
  w.begin_object().integer("input_tokens", usage.prompt_tokens);
  w.key("input_tokens_details").begin_object().integer("cached_tokens", usage.cached_tokens).end_object();
  w.integer("output_tokens", usage.completion_tokens);
  w.key("output_tokens_details").begin_object().integer("reasoning_tokens", usage.reasoning_tokens).end_object();
  w.integer("total_tokens", usage.prompt_tokens + usage.completion_tokens);
  if (usage.dropped_tokens > 0)
    w.integer("dropped_tokens", usage.dropped_tokens);
  w.end_object();
}

template <class T, class Write>
void write_or_null(json_writer& w, std::string_view key, const std::optional<T>& value, Write write) {
  if (value)
    write(w.key(key), *value);
  else
    w.null(key);
}

void write_string_or_null(json_writer& w, std::string_view key, const std::string& value) {
  if (value.empty())
    w.null(key);
  else
    w.string(key, value);
}

} // namespace

responses_stream::responses_stream(answer_identity identity, response_echo echo, std::string stream_id,
                                   std::function<std::string(std::string_view)> make_id)
    : identity_(std::move(identity)), echo_(std::move(echo)), stream_id_(std::move(stream_id)), make_id_(std::move(make_id)) {
  message_.role = "assistant";
}

void responses_stream::consume(const generation_event& event, std::vector<response_event>& out) {
  if (!ended_)
    std::visit([&](const auto& e) { on(e, out); }, event);
}

void responses_stream::on(const generation_started&, std::vector<response_event>& out) {
  const std::string object = object_json();
  emit(
      "response.created", [&](json_writer& w) { w.raw("response", object); }, out);
  emit(
      "response.in_progress", [&](json_writer& w) { w.raw("response", object); }, out);
}

void responses_stream::on(const text_delta& e, std::vector<response_event>& out) {
  if (e.text.empty() && e.logprobs.empty())
    return;
  open(item_kind::message, out);
  open_text_ += e.text;
  open_logprobs_.insert(open_logprobs_.end(), e.logprobs.begin(), e.logprobs.end());
  message_.content += e.text;
  emit(
      "response.output_text.delta",
      [&](json_writer& w) {
        w.string("item_id", open_id_)
            .integer("output_index", static_cast<std::int64_t>(items_.size()))
            .integer("content_index", 0);
        w.string("delta", e.text).key("logprobs");
        write_logprobs(w, e.logprobs);
      },
      out);
}

void responses_stream::on(const reasoning_delta& e, std::vector<response_event>& out) {
  if (e.text.empty())
    return;
  open(item_kind::reasoning, out);
  open_text_ += e.text;
  message_.reasoning += e.text;
  emit(
      "response.reasoning_text.delta",
      [&](json_writer& w) {
        w.string("item_id", open_id_)
            .integer("output_index", static_cast<std::int64_t>(items_.size()))
            .integer("content_index", 0);
        w.string("delta", e.text);
      },
      out);
}

void responses_stream::on(const tool_call_made& e, std::vector<response_event>& out) {
  close("completed", out);
  message_.tool_calls.push_back(e.call);
  const std::string item_id = make_id_("fc_");
  const auto item = [&](std::string_view arguments, std::string_view status) {
    std::string json;
    json_writer w(json);
    w.begin_object()
        .string("id", item_id)
        .string("type", "function_call")
        .string("call_id", e.call.id)
        .string("name", e.call.name);
    w.string("arguments", arguments).string("status", status).end_object();
    return json;
  };
  const auto output_index = static_cast<std::int64_t>(items_.size());
  emit_item("response.output_item.added", item("", "in_progress"), out);
  emit(
      "response.function_call_arguments.delta",
      [&](json_writer& w) {
        w.string("item_id", item_id).integer("output_index", output_index).string("delta", e.call.arguments);
      },
      out);
  emit(
      "response.function_call_arguments.done",
      [&](json_writer& w) {
        w.string("item_id", item_id).integer("output_index", output_index).string("name", e.call.name);
        w.string("arguments", e.call.arguments);
      },
      out);
  const std::string done = item(e.call.arguments, "completed");
  emit_item("response.output_item.done", done, out);
  items_.push_back(done);
}

void responses_stream::on(const generation_finished& e, std::vector<response_event>& out) {
  usage_ = e.usage;
  completed_at_ = unix_now();
  const bool complete = e.reason == finish_reason::length ? echo_.prefill_only : e.reason != finish_reason::cancelled;
  if (complete) {
    close("completed", out);
    status_ = "completed";
    return end("response.completed", out);
  }
  close("incomplete", out);
  // There is no response.cancelled event: a cancelled response ends as an incomplete one that says so.
  status_ = e.reason == finish_reason::cancelled ? "cancelled" : "incomplete";
  if (e.reason == finish_reason::length)
    incomplete_reason_ = "max_output_tokens";
  end("response.incomplete", out);
}

void responses_stream::on(const generation_failed& e, std::vector<response_event>& out) {
  close("incomplete", out);
  usage_ = e.usage;
  fault_ = e.fault;
  status_ = "failed";
  end("response.failed", out);
}

void responses_stream::fail_instead(const error& fault, std::vector<response_event>& out) {
  TROUPE_CHECK(ended_);
  fault_ = fault;
  status_ = "failed";
  incomplete_reason_.clear();
  --sequence_;
  end("response.failed", out);
}

void responses_stream::end(std::string_view type, std::vector<response_event>& out) {
  ended_ = true;
  const std::string object = object_json();
  emit(
      type, [&](json_writer& w) { w.raw("response", object); }, out);
}

// ---- items ----

void responses_stream::open(item_kind kind, std::vector<response_event>& out) {
  if (open_ == kind)
    return;
  close("completed", out);
  open_ = kind;
  open_id_ = make_id_(kind == item_kind::message ? "msg_" : "rs_");
  emit_item("response.output_item.added", item_json("in_progress", false), out);
  emit(
      "response.content_part.added",
      [&](json_writer& w) {
        w.string("item_id", open_id_)
            .integer("output_index", static_cast<std::int64_t>(items_.size()))
            .integer("content_index", 0);
        w.key("part");
        write_part(w, false);
      },
      out);
}

void responses_stream::close(std::string_view status, std::vector<response_event>& out) {
  if (open_ == item_kind::none)
    return;
  const bool message = open_ == item_kind::message;
  const auto place = [&](json_writer& w) {
    w.string("item_id", open_id_).integer("output_index", static_cast<std::int64_t>(items_.size())).integer("content_index", 0);
  };
  emit(
      message ? "response.output_text.done" : "response.reasoning_text.done",
      [&](json_writer& w) {
        place(w);
        w.string("text", open_text_);
        if (message) {
          w.key("logprobs");
          write_logprobs(w, open_logprobs_);
        }
      },
      out);
  emit(
      "response.content_part.done",
      [&](json_writer& w) {
        place(w);
        w.key("part");
        write_part(w, true);
      },
      out);
  std::string done = item_json(status, true);
  emit_item("response.output_item.done", done, out);
  items_.push_back(std::move(done));
  open_ = item_kind::none;
  open_text_.clear();
  open_logprobs_.clear();
}

std::string responses_stream::item_json(std::string_view status, bool with_content) const {
  std::string out;
  json_writer w(out);
  w.begin_object().string("id", open_id_);
  if (open_ == item_kind::message)
    w.string("type", "message").string("status", status).string("role", "assistant");
  else
    w.string("type", "reasoning").key("summary").begin_array().end_array();
  w.key("content").begin_array();
  if (with_content)
    write_part(w, true);
  w.end_array();
  if (open_ != item_kind::message)
    w.string("status", status);
  w.end_object();
  return out;
}

void responses_stream::write_part(json_writer& w, bool with_text) const {
  w.begin_object().string("type", open_ == item_kind::message ? "output_text" : "reasoning_text");
  w.string("text", with_text ? std::string_view(open_text_) : std::string_view());
  if (open_ == item_kind::message) {
    w.key("annotations").begin_array().end_array().key("logprobs");
    write_logprobs(w, with_text ? open_logprobs_ : std::vector<text_logprob>());
  }
  w.end_object();
}

void responses_stream::write_logprobs(json_writer& w, const std::vector<text_logprob>& values) const {
  w.begin_array();
  for (const text_logprob& value : values)
    write_logprob(w, value);
  w.end_array();
}

// ---- events ----

void responses_stream::emit(std::string_view type, const std::function<void(json_writer&)>& fields,
                            std::vector<response_event>& out) {
  response_event event{type, {}};
  json_writer w(event.json);
  w.begin_object().string("type", type).integer("sequence_number", sequence_++);
  fields(w);
  if (!stream_id_.empty())
    w.string("stream_id", stream_id_);
  w.end_object();
  out.push_back(std::move(event));
}

void responses_stream::emit_item(std::string_view type, std::string_view item, std::vector<response_event>& out) {
  emit(
      type, [&](json_writer& w) { w.integer("output_index", static_cast<std::int64_t>(items_.size())).raw("item", item); },
      out);
}

std::string responses_stream::object_json() const {
  std::string out;
  json_writer w(out);
  w.begin_object().string("id", identity_.id).string("object", "response").integer("created_at", identity_.created);
  w.string("status", status_).boolean("background", false);
  write_or_null(w, "completed_at", status_ == "completed" ? std::optional(completed_at_) : std::nullopt,
                [](json_writer& at, std::int64_t value) { at.integer(value); });
  if (fault_.code == errc::ok)
    w.null("error");
  else
    w.key("error")
        .begin_object()
        .string("code", http_failure_of(fault_.code).code)
        .string("message", fault_.message)
        .end_object();
  if (incomplete_reason_.empty())
    w.null("incomplete_details");
  else
    w.key("incomplete_details").begin_object().string("reason", incomplete_reason_).end_object();
  write_or_null(w, "instructions", echo_.instructions, [](json_writer& at, const std::string& value) { at.string(value); });
  write_or_null(w, "max_output_tokens", echo_.max_output_tokens, [](json_writer& at, int value) { at.integer(value); });
  w.raw("metadata", echo_.metadata).string("model", identity_.model).key("output").begin_array();
  for (const std::string& item : items_)
    w.raw(item);
  w.end_array().boolean("parallel_tool_calls", echo_.parallel_tool_calls);
  write_string_or_null(w, "previous_response_id", echo_.previous_response_id);
  w.key("reasoning").begin_object();
  write_string_or_null(w, "effort", echo_.effort);
  w.null("summary").end_object().boolean("store", echo_.store);
  write_or_null(w, "temperature", echo_.temperature, [](json_writer& at, double value) { at.number(value); });
  w.key("text").begin_object().key("format").begin_object().string("type", "text").end_object().end_object();
  w.string("tool_choice", echo_.tool_choice).raw("tools", echo_.tools);
  write_or_null(w, "top_p", echo_.top_p, [](json_writer& at, double value) { at.number(value); });
  w.string("truncation", echo_.truncation);
  write_or_null(w, "usage", usage_, [](json_writer& at, const token_usage& value) { write_response_usage(at, value); });
  w.null("user").end_object();
  return out;
}

} // namespace troupe
