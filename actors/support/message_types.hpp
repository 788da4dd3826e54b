// Tells CAF how each message may travel. Control messages are inspectable, so that they can be logged and one day sent to
// another node; messages that carry buffers or handles stay within the process.
#pragma once
#include <caf/all.hpp>

#include "actors/messages.hpp"

namespace troupe {

template <class Inspector>
auto inspect(Inspector& f, cancel_generation& x) {
  return f(caf::meta::type_name("cancel_generation"), x.number);
}
template <class Inspector>
auto inspect(Inspector& f, session_opened& x) {
  return f(caf::meta::type_name("session_opened"), x.number, x.company_version);
}
template <class Inspector>
auto inspect(Inspector& f, session_closed& x) {
  return f(caf::meta::type_name("session_closed"), x.number);
}
template <class Inspector>
auto inspect(Inspector& f, session_lost& x) {
  return f(caf::meta::type_name("session_lost"), x.number);
}
template <class Inspector>
auto inspect(Inspector& f, error& x) {
  return f(caf::meta::type_name("error"), x.code, x.message);
}
template <class Inspector>
auto inspect(Inspector& f, end_session& x) {
  return f(caf::meta::type_name("end_session"), x.fault);
}
template <class Inspector>
auto inspect(Inspector& f, cancel_request& x) {
  return f(caf::meta::type_name("cancel_request"), x.id);
}
template <class Inspector>
auto inspect(Inspector& f, take_shard& x) {
  return f(caf::meta::type_name("take_shard"), x.shard, x.incarnation);
}
template <class Inspector>
auto inspect(Inspector& f, shard_report& x) {
  return f(caf::meta::type_name("shard_report"), x.serial, x.pages, x.free, x.cached);
}
template <class Inspector>
auto inspect(Inspector& f, shard_taken& x) {
  return f(caf::meta::type_name("shard_taken"), x.shard, x.incarnation, x.report);
}
template <class Inspector>
auto inspect(Inspector& f, grow_pages& x) {
  return f(caf::meta::type_name("grow_pages"), x.shard, x.lease, x.id, x.need_tokens, x.max_tokens);
}
template <class Inspector>
auto inspect(Inspector& f, release_pages& x) {
  return f(caf::meta::type_name("release_pages"), x.shard, x.lease, x.id, x.position, x.tokens);
}
template <class Inspector>
auto inspect(Inspector& f, token_logprob& x) {
  return f(caf::meta::type_name("token_logprob"), x.token, x.logprob);
}
template <class Inspector>
auto inspect(Inspector& f, sampled_token& x) {
  return f(caf::meta::type_name("sampled_token"), x.token, x.logprob, x.top);
}
template <class Inspector>
auto inspect(Inspector& f, batch_usage& x) {
  return f(caf::meta::type_name("batch_usage"), x.prompt_tokens, x.cached_tokens, x.completion_tokens);
}
template <class Inspector>
auto inspect(Inspector& f, tokens_generated& x) {
  return f(caf::meta::type_name("tokens_generated"), x.id, x.position, x.tokens, x.first, x.usage);
}
template <class Inspector>
auto inspect(Inspector& f, request_finished& x) {
  return f(caf::meta::type_name("request_finished"), x.id, x.reason, x.end_token, x.usage);
}
template <class Inspector>
auto inspect(Inspector& f, request_failed& x) {
  return f(caf::meta::type_name("request_failed"), x.id, x.fault, x.usage);
}
template <class Inspector>
auto inspect(Inspector& f, pages_changed& x) {
  return f(caf::meta::type_name("pages_changed"), x.shard, x.free, x.used, x.cached, x.pinned, x.states, x.below);
}
template <class Inspector>
auto inspect(Inspector& f, await_steps& x) {
  return f(caf::meta::type_name("await_steps"), x.shard, x.number);
}
template <class Inspector>
auto inspect(Inspector& f, steps_awaited& x) {
  return f(caf::meta::type_name("steps_awaited"), x.shard, x.number);
}
template <class Inspector>
auto inspect(Inspector& f, settle_moves& x) {
  return f(caf::meta::type_name("settle_moves"), x.shard, x.incarnation);
}
template <class Inspector>
auto inspect(Inspector& f, moves_settled& x) {
  return f(caf::meta::type_name("moves_settled"), x.shard, x.incarnation);
}
template <class Inspector>
auto inspect(Inspector& f, batch_changed& x) {
  return f(caf::meta::type_name("batch_changed"), x.running, x.waiting);
}
template <class Inspector>
auto inspect(Inspector& f, actor_died& x) {
  return f(caf::meta::type_name("actor_died"), x.kind);
}
template <class Inspector>
auto inspect(Inspector& f, kill_actor& x) {
  return f(caf::meta::type_name("kill_actor"), x.kind, x.index);
}
template <class Inspector>
auto inspect(Inspector& f, stop_company& x) {
  return f(caf::meta::type_name("stop_company"), x.fault);
}
template <class Inspector>
auto inspect(Inspector& f, restart_due& x) {
  return f(caf::meta::type_name("restart_due"), x.kind, x.index, x.incarnation);
}

} // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::open_session)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::prepare_prompt)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::prompt_prepared)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::submit_request)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::reserve_pages)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::publish_pages)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::page_answer)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::run_step)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::step_ended)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::move_pages)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::pages_moved)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::expect_prompt)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::peers_changed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::adopt_session)
