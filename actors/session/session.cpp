#include "actors/session/session.hpp"

#include "actors/support/actor_support.hpp"

namespace troupe {

namespace {

using self_pointer = session_actor::stateful_pointer<session_state>;

const member<worker_actor>& worker_of(const session_state& state) {
  const auto& workers = state.peers->workers;
  return workers[state.logic->number() % workers.size()];
}

void ask_worker(self_pointer self) {
  auto& state = self->state;
  const auto& worker = worker_of(state);
  if (!worker.alive() || worker.incarnation == state.asked_worker)
    return;
  state.asked_worker = worker.incarnation;
  self->send(worker.handle, prepare_prompt{state.logic->number(), state.logic->request(), state.logic->unwanted()});
}

// Where the batcher is down, the next peers_changed leads to a resubmission.
void submit(self_pointer self, batch_request_ptr request) {
  auto& state = self->state;
  const auto& batcher = state.peers->batcher;
  if (!request || !batcher.alive())
    return;
  state.asked_batcher = batcher.incarnation;
  self->send(batcher.handle, submit_request{std::move(request)});
}

// After each handler: the batcher learns of a run that nobody wants, and a turn that has ended ends its session.
void conclude(self_pointer self) {
  auto& state = self->state;
  if (state.check_invariants)
    state.logic->check_invariants();
  if (const auto run = state.logic->take_abandoned(); run && state.peers->batcher.alive())
    self->send(state.peers->batcher.handle, cancel_request{*run});
  if (state.logic->ended())
    self->quit();
}

void follow_peers(self_pointer self, const company_ptr& peers) {
  auto& state = self->state;
  state.peers = peers;
  if (state.logic->cancel_requested())
    state.logic->cancel(); // a bridge that died may have had the message
  else if (state.logic->waits_for_prompt())
    ask_worker(self);
  else if (peers->batcher.alive() && peers->batcher.incarnation != state.asked_batcher)
    submit(self, state.logic->resubmission());
}

} // namespace

session_actor::behavior_type session(self_pointer self, session_parts parts, company_ptr peers) {
  settle_in(self, parts.context);
  auto& state = self->state;
  state.check_invariants = parts.context->check_invariants;
  state.logic.emplace(std::move(parts));
  state.peers = std::move(peers);
  self->send(state.peers->supervisor, session_opened{state.logic->number(), state.peers->version});
  ask_worker(self);
  return {
      [self](const prompt_prepared& news) {
        submit(self, self->state.logic->prepared(*news.prompt));
        conclude(self);
      },
      [self](const tokens_generated& news) {
        self->state.logic->generated(news);
        conclude(self);
      },
      [self](const request_finished& news) {
        self->state.logic->finished(news);
        conclude(self);
      },
      [self](const request_failed& news) {
        self->state.logic->failed(news);
        conclude(self);
      },
      [self](const cancel_generation&) {
        self->state.logic->cancel();
        conclude(self);
      },
      [self](const end_session& news) {
        self->state.logic->fail(news.fault);
        conclude(self);
      },
      [self](const peers_changed& news) {
        follow_peers(self, news.peers);
        conclude(self);
      },
  };
}

} // namespace troupe
