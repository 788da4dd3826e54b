#include "actors/edge_bridge/edge_bridge.hpp"

#include "actors/session/session.hpp"
#include "actors/support/actor_support.hpp"

namespace troupe {

namespace {

void open(edge_bridge_actor::stateful_pointer<edge_bridge_state> self, const open_session& ask) {
  auto& state = self->state;
  if (!state.peers || state.peers->workers.empty()) {
    ask.ticket->fail({errc::unavailable, "the service is starting; try again"});
    return;
  }
  const auto number = ask.ticket->number();
  state.sessions[number] = self->spawn(session, session_parts{state.context, ask.ticket, ask.request}, state.peers);
}

} // namespace

edge_bridge_actor::behavior_type edge_bridge(edge_bridge_actor::stateful_pointer<edge_bridge_state> self, context_ptr context) {
  settle_in(self, context);
  self->state.context = std::move(context);
  return {
      [self](const open_session& ask) { open(self, ask); },
      [self](const cancel_generation& ask) {
        if (const auto at = self->state.sessions.find(ask.number); at != self->state.sessions.end())
          self->send(at->second, ask);
      },
      [self](const adopt_session& news) { self->state.sessions[news.number] = news.session; },
      [self](const session_closed& news) { self->state.sessions.erase(news.number); },
      [self](const peers_changed& news) { self->state.peers = news.peers; },
  };
}

} // namespace troupe
