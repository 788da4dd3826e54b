// Every number that /metrics shows, with its name and help text, in one place.
//
// Owns: atomics only. Promises: adding is wait-free and may be done from any thread; render() reads without asking an actor,
// so that a scrape works while everything else is stuck. Limits: a fixed set of series; none is keyed by outside input.
#pragma once
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "actors/actor_kind.hpp"
#include "actors/metrics/copy_overlap.hpp"
#include "config/limits.hpp"
#include "io/edge.hpp"

namespace troupe {

// Cumulative histogram of seconds with the fixed bounds below.
class seconds_histogram {
public:
  static constexpr std::array<double, 16> bounds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,  0.25,
                                                 0.5,   1.0,    2.5,   5.0,  10.0,  30.0, 60.0, 120.0};
  void observe(std::chrono::steady_clock::duration time) noexcept;
  void render(std::string& out, std::string_view name) const;
  std::uint64_t count() const noexcept;

private:
  std::array<std::atomic<std::uint64_t>, bounds.size() + 1> counts_{}; // the last: beyond every bound
  std::atomic<std::uint64_t> nanoseconds_{0};
};

enum class page_state {
  free,
  used,
  cached,
  pinned,     // of those used and cached
  with_state, // as well: beside which the state of a prompt is kept
  in_host,    // copies in the tiers below
  on_disk,
};
inline constexpr std::size_t page_states = 7;

class metrics_registry {
public:
  using counter = std::atomic<std::uint64_t>;
  using gauge = std::atomic<std::int64_t>;

  static std::string_view outcome_of(finish_reason reason) noexcept;

  // `outcome`: a finish reason or an errc by its name; others count as "internal".
  void request_ended(std::string_view outcome, std::chrono::steady_clock::duration time) noexcept;
  void pages(int shard, page_state state, std::int64_t count) noexcept;
  std::uint64_t requests(std::string_view outcome) const noexcept;
  std::int64_t pages(page_state state) const noexcept; // over all shards

  counter requests_refused{0};
  counter prompts_prepared{0};
  counter history_hits{0};
  counter history_misses{0};
  counter history_tokens{0};
  counter history_forgotten{0};
  counter prompt_tokens{0};
  counter cached_tokens{0};
  counter generated_tokens{0};
  counter dropped_tokens{0};
  counter contexts_outgrown{0};
  counter evictions{0};
  counter evicted_tokens{0};
  counter reread_tokens{0};
  counter steps{0};
  counter steps_failed{0};
  counter step_tokens{0};
  counter step_nanoseconds{0};
  counter resubmissions{0};
  counter prefix_lookups{0};
  counter prefix_hits{0};
  counter prefix_copied_tokens{0};
  counter prompt_state_hits{0};
  counter pins_refused{0};
  counter pages_published{0};
  counter pages_evicted{0};
  counter pages_expired{0};
  counter pages_covered{0};
  counter pages_granted{0};
  counter page_runs_granted{0};
  counter tier_lookups{0};
  counter tier_misses{0};
  std::array<counter, 2> tier_pages_up{}; // from the host, from disk
  counter tier_pages_down{0};
  std::array<counter, 2> bytes_moved{};   // down, up
  counter tier_pages_prefetched{0};
  counter tier_prefetch_used{0};
  counter tier_prefetch_unused{0};
  counter tier_damaged{0};
  counter tier_failed{0};
  counter tier_evicted{0};
  counter tier_clean_evicted{0};
  counter tier_lost{0};
  copy_overlap overlap;
  gauge running{0};
  gauge waiting{0};
  gauge history_conversations{0};
  gauge history_messages{0};
  gauge history_bytes{0};
  std::array<counter, actor_kinds> restarts{};
  seconds_histogram first_token;
  seconds_histogram inter_token;
  seconds_histogram queue_wait;
  seconds_histogram end_to_end;

  // `in_flight_now`: requests between submit and their end.
  std::string render(int in_flight_now) const;

private:
  static constexpr std::array<std::string_view, 20> outcomes{
      "stop",       "length",       "tool_calls",    "cancelled",  "invalid_argument", "unsupported",   "not_found",
      "model_format", "context_full", "queue_full",  "no_memory",  "timeout",          "unauthorized",  "forbidden",
      "too_large",  "shutting_down", "unavailable",  "device_failed", "io_failed",     "internal"};
  static std::size_t index_of(std::string_view outcome) noexcept;
  void render_tiers(std::string& out) const;

  std::array<counter, outcomes.size()> ended_{};
  std::array<std::array<gauge, page_states>, limits::kv_shards_max> pages_{};
};

} // namespace troupe
