// Owns: the gauges that only one actor knows (pages, running, waiting) and the count of deaths, in metrics_registry.
// Accepts: pages_changed, batch_changed, actor_died.
// Tells: nobody.
// Always true: a scrape reads the registry and never waits for this actor.
// Limits: its senders send at most one message for each that they handle.
// If it fails: gauges stand still until it is back; nothing else notices.
#pragma once
#include "actors/interfaces.hpp"
#include "actors/support/runtime_context.hpp"

namespace troupe {

struct metrics_state {
  const char* name = "metrics";
  context_ptr context;
};

metrics_actor::behavior_type metrics(metrics_actor::stateful_pointer<metrics_state> self, context_ptr context);

} // namespace troupe
