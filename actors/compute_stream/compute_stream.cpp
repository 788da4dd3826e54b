#include "actors/compute_stream/compute_stream.hpp"

#include "actors/support/actor_support.hpp"

namespace troupe {

namespace {

step_ended run_and_count(const compute_stream_state& state, const step_plan& plan) {
  auto& metrics = *state.context->metrics;
  const copy_overlap::during stepping(metrics.overlap, state.context->clock, copy_overlap::part::stepping);
  const auto begin = state.context->clock();
  auto done = state.slot->run(plan);
  const auto spent = std::chrono::duration_cast<std::chrono::nanoseconds>(state.context->clock() - begin);
  metrics.steps.fetch_add(1, std::memory_order_relaxed);
  metrics.step_tokens.fetch_add(static_cast<std::uint64_t>(plan.tokens()), std::memory_order_relaxed);
  metrics.step_nanoseconds.fetch_add(static_cast<std::uint64_t>(spent.count()), std::memory_order_relaxed);
  if (done)
    return {plan.number, std::make_shared<const step_result>(std::move(*done)), {}};
  metrics.steps_failed.fetch_add(1, std::memory_order_relaxed);
  log_to(state.context->log, log_level::error, "step " + std::to_string(plan.number) + " failed: " + done.fault().message);
  return {plan.number, nullptr, done.fault()};
}

} // namespace

compute_stream_actor::behavior_type compute_stream(compute_stream_actor::stateful_pointer<compute_stream_state> self,
                                                   context_ptr context, std::shared_ptr<backend_slot> slot) {
  settle_in(self, context);
  self->state.context = std::move(context);
  self->state.slot = std::move(slot);
  return {
      [self](const run_step& ask) { return run_and_count(self->state, *ask.plan); },
      [](const await_steps& ask) { return steps_awaited{ask.shard, ask.number}; },
  };
}

} // namespace troupe
