#include "actors/kv_shard/kv_shard.hpp"

#include "actors/support/actor_support.hpp"

namespace troupe {

namespace {

using self_pointer = kv_shard_actor::stateful_pointer<kv_shard_state>;

void add(metrics_registry::counter& to, std::uint64_t value, std::uint64_t counted) {
  if (value != counted)
    to.fetch_add(value - counted, std::memory_order_relaxed);
}

void count(metrics_registry& metrics, const kv_shard_stats& now, const kv_shard_stats& before) {
  add(metrics.prefix_lookups, now.reservations, before.reservations);
  add(metrics.prefix_hits, now.hits, before.hits);
  add(metrics.prefix_copied_tokens, now.copied_tokens, before.copied_tokens);
  add(metrics.prompt_state_hits, now.state_hits, before.state_hits);
  add(metrics.pins_refused, now.pins_refused, before.pins_refused);
  add(metrics.pages_published, now.published_pages, before.published_pages);
  add(metrics.pages_evicted, now.evicted_pages, before.evicted_pages);
  add(metrics.pages_expired, now.expired_pages, before.expired_pages);
  add(metrics.pages_covered, now.covered_pages, before.covered_pages);
  add(metrics.pages_granted, now.granted_pages, before.granted_pages);
  add(metrics.page_runs_granted, now.granted_runs, before.granted_runs);
}

void count(metrics_registry& metrics, const tier_stats& now, const tier_stats& before) {
  add(metrics.tier_lookups, now.lookups, before.lookups);
  add(metrics.tier_misses, now.misses, before.misses);
  for (std::size_t i = 0; i < tier_levels; ++i) {
    add(metrics.tier_pages_up[i], now.pages_up[i], before.pages_up[i]);
    add(metrics.tier_evicted, now.index.evicted[i], before.index.evicted[i]);
  }
  add(metrics.tier_pages_down, now.pages_down, before.pages_down);
  add(metrics.tier_pages_prefetched, now.prefetched, before.prefetched);
  add(metrics.tier_prefetch_used, now.prefetch_used, before.prefetch_used);
  add(metrics.tier_prefetch_unused, now.prefetch_unused, before.prefetch_unused);
  add(metrics.tier_damaged, now.damaged, before.damaged);
  add(metrics.tier_failed, now.failed, before.failed);
  add(metrics.tier_clean_evicted, now.clean_evicted, before.clean_evicted);
  add(metrics.tier_lost, now.lost, before.lost);
}

// After each handler: invariants where asked for, and news for the counters and gauges where there are any.
void conclude(self_pointer self) {
  auto& state = self->state;
  auto& metrics = *state.context->metrics;
  if (state.context->check_invariants)
    state.memory->check_invariants();
  const auto stats = state.memory->stats();
  count(metrics, stats, state.counted);
  state.counted = stats;
  pages_changed now{state.memory->config().index, stats.free, stats.used, stats.cached, stats.pinned, stats.states, {}};
  if (state.memory->has_tiers()) {
    const auto tiers = state.memory->tiers();
    count(metrics, tiers, state.tiers_counted);
    state.tiers_counted = tiers;
    now.below = tiers.index.used;
    if (const int waiting = state.memory->waiting(); waiting != state.waiting) {
      metrics.overlap.change(state.context->clock(), copy_overlap::part::waiting, waiting - state.waiting);
      state.waiting = waiting;
    }
  }
  if (now == state.told)
    return;
  state.told = now;
  if (state.peers && state.peers->metrics.alive())
    self->send(state.peers->metrics.handle, now);
}

tiered_shard& now_is(self_pointer self) {
  self->state.memory->pass(self->state.context->clock());
  return *self->state.memory;
}

// Carries out what the shard decided, in its order.
void carry_out(self_pointer self, shard_actions actions) {
  const auto& state = self->state;
  for (auto& action : actions)
    std::visit(
        [&](auto& a) {
          using kind = std::decay_t<decltype(a)>;
          if constexpr (!std::is_same_v<kind, move_pages>)
            self->send(state.owner, page_answer{std::move(a)});
          else if (state.peers->transfer.alive())
            self->send(state.peers->transfer.handle, std::move(a));
        },
        action);
  conclude(self);
}

void know_owner(self_pointer self) {
  self->state.owner = caf::actor_cast<batcher_actor>(self->current_sender());
}

// A step of the former batcher may still run, or wait in the compute stream's mailbox. Where that is dead, both are over.
void ask_for_steps(self_pointer self) {
  auto& state = self->state;
  if (!state.memory->awaits_steps() || state.takes == 0)
    return;
  if (state.compute == 0)
    return carry_out(self, now_is(self).steps_passed());
  self->send(state.peers->compute.handle, await_steps{state.memory->config().index, state.takes});
}

void take_now(self_pointer self) {
  auto& state = self->state;
  const auto ask = *std::exchange(state.take, std::nullopt);
  now_is(self).taken();
  ++state.takes;
  self->send(state.owner, shard_taken{ask.shard, ask.incarnation, state.memory->report()});
  ask_for_steps(self);
  conclude(self);
}

void take_when_settled(self_pointer self) {
  if (self->state.take && (self->state.settled || !self->state.memory->has_tiers()))
    take_now(self);
}

void follow_transfer(self_pointer self) {
  auto& state = self->state;
  const auto& transfer = state.peers->transfer;
  const std::uint32_t now = transfer.alive() ? transfer.incarnation : 0;
  if (now == state.transfer && (now != 0 || state.settled))
    return;
  if (state.transfer != 0)
    carry_out(self, now_is(self).transfer_lost());
  state.transfer = now;
  state.settled = now == 0; // its thread has left: nothing is being moved
  if (now != 0)
    self->send(transfer.handle, settle_moves{state.memory->config().index, now});
}

void follow_compute(self_pointer self) {
  auto& state = self->state;
  const auto& compute = state.peers->compute;
  const std::uint32_t now = compute.alive() ? compute.incarnation : 0;
  if (now == state.compute)
    return;
  state.compute = now;
  ask_for_steps(self);
}

} // namespace

kv_shard_state::~kv_shard_state() {
  if (waiting != 0)
    context->metrics->overlap.change(context->clock(), copy_overlap::part::waiting, -waiting);
}

kv_shard_actor::behavior_type kv_shard(self_pointer self, context_ptr context, tiered_shard_config config) {
  settle_in(self, context);
  self->state.context = std::move(context);
  self->state.memory.emplace(config);
  return {
      [self](const take_shard& ask) {
        know_owner(self);
        self->state.take = ask;
        take_when_settled(self);
      },
      [self](const reserve_pages& ask) {
        know_owner(self);
        carry_out(self, now_is(self).reserve(ask));
      },
      [self](const grow_pages& ask) {
        know_owner(self);
        carry_out(self, now_is(self).grow(ask));
      },
      [self](const publish_pages& tell) { carry_out(self, now_is(self).publish(tell)); },
      [self](const release_pages& tell) {
        know_owner(self);
        carry_out(self, now_is(self).release(tell));
      },
      [self](const expect_prompt& hint) { carry_out(self, now_is(self).hint(hint.salt, *hint.tokens)); },
      [self](const pages_moved& news) { carry_out(self, now_is(self).moved(news)); },
      [self](const moves_settled& news) {
        if (news.incarnation != self->state.transfer)
          return;
        self->state.settled = true;
        carry_out(self, now_is(self).transfer_ready());
        take_when_settled(self);
      },
      [self](const steps_awaited& news) {
        if (news.number == self->state.takes)
          carry_out(self, now_is(self).steps_passed());
      },
      [self](const peers_changed& news) {
        auto& state = self->state;
        const bool other = !state.peers || news.peers->metrics.incarnation != state.peers->metrics.incarnation;
        state.peers = news.peers;
        if (other)
          state.told = {};
        if (state.memory->has_tiers()) {
          follow_compute(self);
          follow_transfer(self);
          take_when_settled(self);
        }
        conclude(self);
      },
  };
}

} // namespace troupe
