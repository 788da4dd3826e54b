#include "actors/kv_shard/kv_shard.hpp"

#include "actors/support/actor_support.hpp"

namespace troupe {

namespace {

using self_pointer = kv_shard_actor::stateful_pointer<kv_shard_state>;

void count(metrics_registry& metrics, const kv_shard_stats& now, const kv_shard_stats& before) {
  const auto add = [](metrics_registry::counter& to, std::uint64_t value, std::uint64_t counted) {
    if (value != counted)
      to.fetch_add(value - counted, std::memory_order_relaxed);
  };
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

// After each handler: invariants where asked for, and news for the counters and gauges where there are any.
void conclude(self_pointer self) {
  auto& state = self->state;
  if (state.context->check_invariants)
    state.memory->check_invariants();
  const auto stats = state.memory->stats();
  count(*state.context->metrics, stats, state.counted);
  state.counted = stats;
  const pages_changed now{state.memory->config().index, stats.free, stats.used, stats.cached, stats.pinned, stats.states};
  if (now == state.told)
    return;
  state.told = now;
  if (state.metrics.alive())
    self->send(state.metrics.handle, now);
}

kv_shard_memory& now_is(self_pointer self) {
  self->state.memory->pass(self->state.context->clock());
  return *self->state.memory;
}

template <class Variant>
page_answer widen(Variant answer) {
  return std::visit([](auto& a) { return page_answer{std::move(a)}; }, answer);
}

} // namespace

kv_shard_actor::behavior_type kv_shard(self_pointer self, context_ptr context, kv_shard_config config) {
  settle_in(self, context);
  self->state.context = std::move(context);
  self->state.memory.emplace(config);
  return {
      [self](const take_shard& ask) -> shard_taken {
        now_is(self).release_all();
        conclude(self);
        return {ask.shard, ask.incarnation, self->state.memory->report()};
      },
      [self](const reserve_pages& ask) -> page_answer {
        auto answer = widen(now_is(self).reserve(ask));
        conclude(self);
        return answer;
      },
      [self](const grow_pages& ask) -> page_answer {
        auto answer = widen(now_is(self).grow(ask));
        conclude(self);
        return answer;
      },
      [self](const publish_pages& tell) {
        now_is(self).publish(tell);
        conclude(self);
      },
      [self](const release_pages& tell) -> page_answer {
        page_answer answer{now_is(self).release(tell)};
        conclude(self);
        return answer;
      },
      [self](const peers_changed& news) {
        const bool other = news.peers->metrics.incarnation != self->state.metrics.incarnation;
        self->state.metrics = news.peers->metrics;
        if (other)
          self->state.told = {};
        conclude(self);
      },
  };
}

} // namespace troupe
