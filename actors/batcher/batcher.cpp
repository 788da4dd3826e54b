#include "actors/batcher/batcher.hpp"

#include "actors/support/actor_support.hpp"

namespace troupe {

namespace {

using self_pointer = batcher_actor::stateful_pointer<batcher_state>;

// Carries out what the schedule decided, in its order.
class carrier {
public:
  explicit carrier(self_pointer self) : self_(self), state_(self->state) {}

  void carry_out(const batch_actions& actions) {
    for (const auto& action : actions)
      std::visit([this](const auto& a) { act(a); }, action);
    if (state_.context->check_invariants)
      state_.schedule->check_invariants();
    tell_metrics();
  }

private:
  template <class PageMessage>
  void to_shard(const PageMessage& message) {
    const auto& shard = state_.peers->shards.at(message.shard);
    if (shard.alive())
      self_->send(shard.handle, message);
  }

  void act(const reserve_pages& m) { to_shard(m); }
  void act(const grow_pages& m) { to_shard(m); }
  void act(const publish_pages& m) { to_shard(m); }
  void act(const release_pages& m) { to_shard(m); }

  void act(const run_step& m) {
    for (const auto& sequence : m.plan->sequences)
      note_admission(sequence.id);
    if (state_.peers->compute.alive())
      self_->send(state_.peers->compute.handle, m);
  }

  void act(const tokens_generated& m) {
    if (auto* l = listener_of(m.id))
      self_->send(l->session, m);
  }
  void act(const request_finished& m) { last_word(m); }
  void act(const request_failed& m) { last_word(m); }

  template <class End>
  void last_word(const End& m) {
    if (auto* l = listener_of(m.id)) {
      self_->send(l->session, m);
      state_.listeners.erase(m.id.number);
    }
  }

  batcher_state::listener* listener_of(request_id id) {
    const auto at = state_.listeners.find(id.number);
    return at != state_.listeners.end() && at->second.id == id ? &at->second : nullptr;
  }

  void note_admission(request_id id) {
    auto* l = listener_of(id);
    if (!l || l->admitted)
      return;
    l->admitted = true;
    state_.context->metrics->queue_wait.observe(state_.context->clock() - l->since);
  }

  void count_evictions(const batch_schedule_stats& now) {
    auto& metrics = *state_.context->metrics;
    metrics.evictions.fetch_add(now.evictions - state_.counted.evictions, std::memory_order_relaxed);
    metrics.evicted_tokens.fetch_add(now.evicted_tokens - state_.counted.evicted_tokens, std::memory_order_relaxed);
    metrics.reread_tokens.fetch_add(now.reread_tokens - state_.counted.reread_tokens, std::memory_order_relaxed);
    state_.counted = now;
  }

  void tell_metrics() {
    const auto stats = state_.schedule->stats();
    count_evictions(stats);
    if (stats.running == state_.told.running && stats.waiting == state_.told.waiting)
      return;
    state_.told = {stats.running, stats.waiting};
    if (state_.peers && state_.peers->metrics.alive())
      self_->send(state_.peers->metrics.handle, state_.told);
  }

  self_pointer self_;
  batcher_state& state_;
};

void follow_shards(self_pointer self, carrier& carrier) {
  auto& state = self->state;
  const auto& shards = state.peers->shards;
  for (std::uint32_t i = 0; i < shards.size(); ++i) {
    const std::uint32_t now = shards[i].alive() ? shards[i].incarnation : 0;
    if (now == state.shards.at(i))
      continue;
    if (state.shards[i] != 0)
      carrier.carry_out(state.schedule->shard_lost(i));
    state.shards[i] = now;
    if (now != 0)
      self->send(shards[i].handle, take_shard{i, now});
  }
}

void follow_compute(batcher_state& state, carrier& carrier) {
  const auto& compute = state.peers->compute;
  const std::uint32_t now = compute.alive() ? compute.incarnation : 0;
  if (now == state.compute)
    return;
  if (state.compute != 0)
    carrier.carry_out(state.schedule->compute_lost());
  state.compute = now;
  if (now != 0)
    carrier.carry_out(state.schedule->compute_ready());
}

void submit(self_pointer self, const submit_request& ask) {
  auto& state = self->state;
  const auto session = caf::actor_cast<session_actor>(self->current_sender());
  const auto now = state.context->clock();
  state.listeners[ask.request->id.number] = {session, ask.request->id, now, false};
  carrier(self).carry_out(state.schedule->submit(*ask.request, now));
}

} // namespace

batcher_actor::behavior_type batcher(self_pointer self, context_ptr context, batch_schedule_config config) {
  settle_in(self, context);
  auto& state = self->state;
  state.context = std::move(context);
  state.shards.assign(config.shard_pages.size(), 0);
  state.schedule.emplace(std::move(config));
  return {
      [self](const submit_request& ask) { submit(self, ask); },
      [self](const cancel_request& ask) { carrier(self).carry_out(self->state.schedule->cancel(ask.id)); },
      [self](const session_lost& news) {
        const auto at = self->state.listeners.find(news.number);
        if (at != self->state.listeners.end())
          carrier(self).carry_out(self->state.schedule->cancel(at->second.id));
      },
      [self](const shard_taken& answer) {
        if (self->state.shards.at(answer.shard) == answer.incarnation)
          carrier(self).carry_out(self->state.schedule->shard_ready(answer.shard, answer.report));
      },
      [self](const page_answer& answer) {
        carrier(self).carry_out(std::visit([self](const auto& a) { return self->state.schedule->answered(a); }, answer.what));
      },
      [self](const step_ended& news) {
        auto& schedule = *self->state.schedule;
        carrier(self).carry_out(news.done ? schedule.step_done(*news.done) : schedule.step_failed(news.number, news.fault));
      },
      [self](const peers_changed& news) {
        self->state.peers = news.peers;
        carrier all(self);
        follow_shards(self, all);
        follow_compute(self->state, all);
      },
  };
}

} // namespace troupe
