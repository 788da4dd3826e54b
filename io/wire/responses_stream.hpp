// The events of one response, in the order and with the fields that the official clients need.
//
// Owns the response's state: its items so far and the one that is open. Promises: response.created and in_progress come
// first; output_index is dense; every item is added, filled and done before the next begins; sequence_number counts from 0
// without gaps; exactly one of completed, incomplete or failed ends it. Knows no socket and no actor. One thread.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/chat.hpp"
#include "io/edge.hpp"
#include "io/wire/answer_identity.hpp"
#include "io/wire/responses_request.hpp"

namespace troupe {

struct response_event {
  std::string_view type;
  std::string json;
};

class responses_stream {
public:
  // `make_id` gives unique ids with a prefix; `stream_id` is repeated in each event where it isn't empty.
  responses_stream(answer_identity identity, response_echo echo, std::string stream_id,
                   std::function<std::string(std::string_view)> make_id);

  // Appends what the event gives rise to. The first one must not be a failure: such a request has no response.
  void consume(const generation_event& event, std::vector<response_event>& out);

  // The end that consume() appended is not sent; the response fails instead. Appends that end.
  void fail_instead(const error& fault, std::vector<response_event>& out);

  bool ended() const noexcept { return ended_; }
  // A later response may go on from this one: it came to its end, be it for want of room.
  bool continuable() const noexcept { return status_ == "completed" || status_ == "incomplete"; }
  const std::string& id() const noexcept { return identity_.id; }
  // The response object as it stands.
  std::string object_json() const;
  // What the assistant said, as the next turn's history.
  chat_message output_message() const { return message_; }
  bool has_output() const noexcept { return !items_.empty(); }

private:
  enum class item_kind { none, reasoning, message };

  void on(const generation_started& e, std::vector<response_event>& out);
  void on(const text_delta& e, std::vector<response_event>& out);
  void on(const reasoning_delta& e, std::vector<response_event>& out);
  void on(const tool_call_made& e, std::vector<response_event>& out);
  void on(const generation_finished& e, std::vector<response_event>& out);
  void on(const generation_failed& e, std::vector<response_event>& out);

  void open(item_kind kind, std::vector<response_event>& out);
  void close(std::string_view status, std::vector<response_event>& out);
  void end(std::string_view type, std::vector<response_event>& out);
  // {"type":...,"sequence_number":...,<fields>[,"stream_id":...]}
  void emit(std::string_view type, const std::function<void(json_writer&)>& fields, std::vector<response_event>& out);
  void emit_item(std::string_view type, std::string_view item, std::vector<response_event>& out);
  std::string item_json(std::string_view status, bool with_content) const;
  void write_part(json_writer& w, bool with_text) const;
  void write_logprobs(json_writer& w, const std::vector<text_logprob>& values) const;

  answer_identity identity_;
  response_echo echo_;
  std::string stream_id_;
  std::function<std::string(std::string_view)> make_id_;

  std::int64_t sequence_ = 0;
  std::vector<std::string> items_; // done, as JSON
  item_kind open_ = item_kind::none;
  std::string open_id_;
  std::string open_text_;
  std::vector<text_logprob> open_logprobs_;
  chat_message message_;

  std::string status_ = "in_progress";
  std::string incomplete_reason_; // empty: none
  error fault_{errc::ok, {}};
  std::optional<token_usage> usage_;
  std::int64_t completed_at_ = 0;
  bool ended_ = false;
};

} // namespace troupe
