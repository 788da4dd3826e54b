#include "actors/metrics/metrics.hpp"

#include "actors/support/actor_support.hpp"

namespace troupe {

metrics_actor::behavior_type metrics(metrics_actor::stateful_pointer<metrics_state> self, context_ptr context) {
  settle_in(self, context);
  self->state.context = std::move(context);
  return {
      [self](const pages_changed& news) {
        auto& registry = *self->state.context->metrics;
        registry.pages(static_cast<int>(news.shard), page_state::free, news.free);
        registry.pages(static_cast<int>(news.shard), page_state::used, news.used);
        registry.pages(static_cast<int>(news.shard), page_state::cached, news.cached);
        registry.pages(static_cast<int>(news.shard), page_state::pinned, news.pinned);
        registry.pages(static_cast<int>(news.shard), page_state::with_state, news.states);
        registry.pages(static_cast<int>(news.shard), page_state::in_host, news.below[index_of(tier_level::host)]);
        registry.pages(static_cast<int>(news.shard), page_state::on_disk, news.below[index_of(tier_level::disk)]);
      },
      [self](const batch_changed& news) {
        self->state.context->metrics->running.store(news.running, std::memory_order_relaxed);
        self->state.context->metrics->waiting.store(news.waiting, std::memory_order_relaxed);
      },
      [self](const actor_died& news) {
        const auto kind = static_cast<std::size_t>(news.kind);
        self->state.context->metrics->restarts.at(kind).fetch_add(1, std::memory_order_relaxed);
      },
  };
}

} // namespace troupe
