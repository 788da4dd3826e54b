#include "actors/worker/worker.hpp"

#include "actors/support/actor_support.hpp"

namespace troupe {

worker_actor::behavior_type worker(worker_actor::stateful_pointer<worker_state> self, context_ptr context) {
  settle_in(self, context);
  self->state.context = context;
  self->state.preparer.emplace(std::move(context));
  return {
      [self](const prepare_prompt& ask) -> prompt_prepared {
        const auto& shared = *self->state.context;
        auto& preparer = *self->state.preparer;
        shared.metrics->prompts_prepared.fetch_add(1, std::memory_order_relaxed);
        auto prompt = std::make_shared<const prepared_prompt>(preparer.prepare(*ask.request));
        if (shared.check_invariants)
          preparer.check_invariants();
        return {ask.number, std::move(prompt)};
      },
  };
}

} // namespace troupe
