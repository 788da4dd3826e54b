#include "actors/worker/worker.hpp"

#include "actors/support/actor_support.hpp"

namespace troupe {

worker_actor::behavior_type worker(worker_actor::stateful_pointer<worker_state> self, context_ptr context) {
  settle_in(self, context);
  self->state.context = std::move(context);
  return {
      [self](const prepare_prompt& ask) -> prompt_prepared {
        const auto& shared = *self->state.context;
        if (ask.unwanted->load(std::memory_order_relaxed)) // since it waited here
          return {ask.number, std::make_shared<const prepared_prompt>(prepared_prompt{
                                            error{errc::cancelled, "the request was cancelled"}, {}, false})};
        shared.metrics->prompts_prepared.fetch_add(1, std::memory_order_relaxed);
        return {ask.number, std::make_shared<const prepared_prompt>(render_prompt(shared, *ask.request))};
      },
  };
}

} // namespace troupe
