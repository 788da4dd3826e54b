#include "actors/kv_shard/kv_shard.hpp"

#include "actors/support/actor_support.hpp"

namespace troupe {

namespace {

using self_pointer = kv_shard_actor::stateful_pointer<kv_shard_state>;

// After each handler: invariants where asked for, and news for the gauges where there are any.
void conclude(self_pointer self) {
  auto& state = self->state;
  if (state.context->check_invariants)
    state.memory->check_invariants();
  const auto stats = state.memory->stats();
  const pages_changed now{state.memory->config().index, stats.free, stats.used, stats.cached};
  if (now.free == state.told.free && now.used == state.told.used && now.cached == state.told.cached)
    return;
  state.told = now;
  if (state.metrics.alive())
    self->send(state.metrics.handle, now);
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
        self->state.memory->release_all();
        conclude(self);
        return {ask.shard, ask.incarnation, self->state.memory->report()};
      },
      [self](const reserve_pages& ask) -> page_answer {
        auto answer = widen(self->state.memory->reserve(ask));
        conclude(self);
        return answer;
      },
      [self](const grow_pages& ask) -> page_answer {
        auto answer = widen(self->state.memory->grow(ask));
        conclude(self);
        return answer;
      },
      [self](const publish_pages& tell) {
        self->state.memory->publish(tell);
        conclude(self);
      },
      [self](const release_pages& tell) -> page_answer {
        page_answer answer{self->state.memory->release(tell)};
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
