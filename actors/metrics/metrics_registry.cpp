#include "actors/metrics/metrics_registry.hpp"

#include <algorithm>
#include <cstdio>

#include "base/check.hpp"

namespace troupe {

namespace {

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

void head(std::string& out, std::string_view name, std::string_view type, std::string_view help) {
  out.append("# HELP ").append(name).append(" ").append(help).append("\n# TYPE ").append(name).append(" ").append(type);
  out += '\n';
}

void sample(std::string& out, std::string_view name, std::string_view labels, const std::string& value) {
  out.append(name);
  if (!labels.empty())
    out.append("{").append(labels).append("}");
  out.append(" ").append(value).append("\n");
}

void single(std::string& out, std::string_view name, std::string_view type, std::string_view help, const std::string& value) {
  head(out, name, type, help);
  sample(out, name, "", value);
}

std::string label(std::string_view key, std::string_view value) {
  return std::string(key) + "=\"" + std::string(value) + "\"";
}

} // namespace

void seconds_histogram::observe(std::chrono::steady_clock::duration time) noexcept {
  const auto spent = std::max(time, std::chrono::steady_clock::duration::zero());
  const double seconds = std::chrono::duration<double>(spent).count();
  const auto bucket = static_cast<std::size_t>(std::lower_bound(bounds.begin(), bounds.end(), seconds) - bounds.begin());
  counts_[bucket].fetch_add(1, std::memory_order_relaxed);
  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(spent).count();
  nanoseconds_.fetch_add(static_cast<std::uint64_t>(nanoseconds), std::memory_order_relaxed);
}

std::uint64_t seconds_histogram::count() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& c : counts_)
    sum += c.load(std::memory_order_relaxed);
  return sum;
}

void seconds_histogram::render(std::string& out, std::string_view name) const {
  const std::string buckets = std::string(name) + "_bucket";
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    below += counts_[i].load(std::memory_order_relaxed);
    sample(out, buckets, label("le", number(bounds[i])), std::to_string(below));
  }
  below += counts_.back().load(std::memory_order_relaxed);
  sample(out, buckets, "le=\"+Inf\"", std::to_string(below));
  sample(out, std::string(name) + "_sum", "", number(1e-9 * static_cast<double>(nanoseconds_.load(std::memory_order_relaxed))));
  sample(out, std::string(name) + "_count", "", std::to_string(below));
}

std::string_view metrics_registry::outcome_of(finish_reason reason) noexcept {
  switch (reason) {
  case finish_reason::stop: return "stop";
  case finish_reason::length: return "length";
  case finish_reason::tool_calls: return "tool_calls";
  case finish_reason::cancelled: return "cancelled";
  }
  return "internal";
}

std::size_t metrics_registry::index_of(std::string_view outcome) noexcept {
  const auto at = std::find(outcomes.begin(), outcomes.end(), outcome);
  return at == outcomes.end() ? outcomes.size() - 1 : static_cast<std::size_t>(at - outcomes.begin());
}

void metrics_registry::request_ended(std::string_view outcome, std::chrono::steady_clock::duration time) noexcept {
  ended_[index_of(outcome)].fetch_add(1, std::memory_order_relaxed);
  end_to_end.observe(time);
}

std::uint64_t metrics_registry::requests(std::string_view outcome) const noexcept {
  return ended_[index_of(outcome)].load(std::memory_order_relaxed);
}

void metrics_registry::pages(int shard, page_state state, std::int64_t count) noexcept {
  if (shard >= 0 && shard < limits::kv_shards_max)
    pages_[static_cast<std::size_t>(shard)][static_cast<std::size_t>(state)].store(count, std::memory_order_relaxed);
}

std::int64_t metrics_registry::pages(page_state state) const noexcept {
  std::int64_t sum = 0;
  for (const auto& shard : pages_)
    sum += shard[static_cast<std::size_t>(state)].load(std::memory_order_relaxed);
  return sum;
}

std::string metrics_registry::render(int in_flight_now) const {
  std::string out;
  out.reserve(8192);
  const auto total = [&](std::string_view name, std::string_view help, const counter& value) {
    single(out, name, "counter", help, std::to_string(value.load(std::memory_order_relaxed)));
  };
  const auto level = [&](std::string_view name, std::string_view help, std::int64_t value) {
    single(out, name, "gauge", help, std::to_string(value));
  };

  head(out, "troupe_requests_total", "counter", "Requests that ended, by outcome.");
  for (const auto outcome : outcomes)
    sample(out, "troupe_requests_total", label("outcome", outcome), std::to_string(requests(outcome)));
  total("troupe_requests_refused_total", "Requests refused before they were tokenised.", requests_refused);
  total("troupe_prompts_prepared_total", "Prompts rendered and tokenised.", prompts_prepared);
  total("troupe_history_hits_total", "Chats whose beginning the token history knew.", history_hits);
  total("troupe_history_misses_total", "Chats that it knew nothing of.", history_misses);
  total("troupe_history_tokens_total", "Tokens taken from it instead of being rendered and tokenised.", history_tokens);
  total("troupe_history_forgotten_total", "Conversations that it forgot for want of room.", history_forgotten);
  level("troupe_history_conversations", "Conversations in the token history.",
        history_conversations.load(std::memory_order_relaxed));
  level("troupe_history_messages", "Messages in it.", history_messages.load(std::memory_order_relaxed));
  level("troupe_history_bytes", "Memory that it holds.", history_bytes.load(std::memory_order_relaxed));
  total("troupe_prompt_tokens_total", "Tokens of prompts that were admitted.", prompt_tokens);
  total("troupe_cached_tokens_total", "Of those, tokens found in the prefix cache.", cached_tokens);
  total("troupe_generated_tokens_total", "Tokens sampled.", generated_tokens);
  total("troupe_contexts_outgrown_total", "Turns that outgrew their context and went on.", contexts_outgrown);
  total("troupe_evictions_total", "Times that a sequence at its budget was compressed.", evictions);
  total("troupe_evicted_tokens_total", "Tokens that were let go by it.", evicted_tokens);
  total("troupe_reread_tokens_total", "Tokens computed once more to find those that stay.", reread_tokens);
  total("troupe_dropped_tokens_total", "Tokens of prompts and answers that their context had no room for.", dropped_tokens);
  total("troupe_resubmissions_total", "Sequences that sessions submitted again after a part died.", resubmissions);
  level("troupe_requests_in_flight", "Requests between submission and end.", in_flight_now);
  level("troupe_sequences_running", "Sequences in the running set.", running.load(std::memory_order_relaxed));
  level("troupe_sequences_waiting", "Sequences that wait for admission.", waiting.load(std::memory_order_relaxed));

  head(out, "troupe_kv_pages", "gauge", "KV pages by state.");
  sample(out, "troupe_kv_pages", "state=\"free\"", std::to_string(pages(page_state::free)));
  sample(out, "troupe_kv_pages", "state=\"used\"", std::to_string(pages(page_state::used)));
  sample(out, "troupe_kv_pages", "state=\"cached\"", std::to_string(pages(page_state::cached)));
  level("troupe_kv_pages_pinned", "Of the used and cached pages, those that requests pinned.", pages(page_state::pinned));
  level("troupe_prompt_states", "Kept states of prompts, whose repetition starts with no forward pass.",
        pages(page_state::with_state));

  total("troupe_prefix_lookups_total", "Reservations, each after a look for the prompt's beginning.", prefix_lookups);
  total("troupe_prefix_hits_total", "Of those, the ones that found at least a token.", prefix_hits);
  total("troupe_prefix_copied_tokens_total", "Cached tokens that came by copying a page in part.", prefix_copied_tokens);
  total("troupe_prompt_state_hits_total", "Sequences that started from a kept state, with no forward pass.", prompt_state_hits);
  total("troupe_prefix_pins_refused_total", "Prompts not pinned because the pinned pages' share was used up.", pins_refused);
  total("troupe_prefix_pages_published_total", "Pages that became findable.", pages_published);
  head(out, "troupe_prefix_pages_evicted_total", "counter", "Findable pages that were given up, by reason.");
  const auto evicted = [&](std::string_view reason, const counter& value) {
    sample(out, "troupe_prefix_pages_evicted_total", label("reason", reason),
           std::to_string(value.load(std::memory_order_relaxed)));
  };
  evicted("room", pages_evicted);
  evicted("age", pages_expired);
  evicted("covered", pages_covered);
  total("troupe_kv_pages_granted_total", "Pages given to sequences, shared ones aside.", pages_granted);
  total("troupe_kv_page_runs_granted_total", "Contiguous runs that those came in.", page_runs_granted);
  const auto granted = pages_granted.load(std::memory_order_relaxed), runs = page_runs_granted.load(std::memory_order_relaxed);
  single(out, "troupe_kv_contiguous_share", "gauge", "Of the granted pages, the share that lies right behind its predecessor.",
         number(granted == 0 ? 1.0 : static_cast<double>(granted - std::min(granted, runs)) / static_cast<double>(granted)));

  render_tiers(out);

  total("troupe_steps_total", "Steps that the compute stream ran.", steps);
  total("troupe_steps_failed_total", "Steps that failed as a whole.", steps_failed);
  total("troupe_step_tokens_total", "Tokens computed in steps, prefill and decode.", step_tokens);
  single(out, "troupe_step_seconds_total", "counter", "Seconds spent inside steps.",
         number(1e-9 * static_cast<double>(step_nanoseconds.load(std::memory_order_relaxed))));

  head(out, "troupe_actor_restarts_total", "counter", "Actors that died and were restarted, or sessions that died, by kind.");
  for (std::size_t i = 0; i < actor_kinds; ++i)
    sample(out, "troupe_actor_restarts_total", label("actor", name_of(static_cast<actor_kind>(i))),
           std::to_string(restarts[i].load(std::memory_order_relaxed)));

  const auto histogram = [&](std::string_view name, std::string_view help, const seconds_histogram& values) {
    head(out, name, "histogram", help);
    values.render(out, name);
  };
  histogram("troupe_time_to_first_token_seconds", "From submission to the first token.", first_token);
  histogram("troupe_inter_token_seconds", "Between two tokens of one request.", inter_token);
  histogram("troupe_queue_wait_seconds", "From submission to admission into the running set.", queue_wait);
  histogram("troupe_request_seconds", "From submission to the end of the request.", end_to_end);
  return out;
}

void metrics_registry::render_tiers(std::string& out) const {
  const auto value_of = [](const counter& value) { return std::to_string(value.load(std::memory_order_relaxed)); };
  const auto total = [&](std::string_view name, std::string_view help, const counter& value) {
    single(out, name, "counter", help, value_of(value));
  };
  using labelled = std::pair<std::string_view, std::string>;
  const auto pair = [&](std::string_view name, std::string_view type, std::string_view help, std::string_view key,
                        const labelled& one, const labelled& other) {
    head(out, name, type, help);
    for (const auto& [which, value] : {one, other})
      sample(out, name, label(key, which), value);
  };
  pair("troupe_tier_pages", "gauge", "Copies of KV pages below the device, by tier.", "tier",
       {"host", std::to_string(pages(page_state::in_host))}, {"disk", std::to_string(pages(page_state::on_disk))});
  total("troupe_tier_lookups_total", "Reservations whose beginning was known in the device or below.", tier_lookups);
  total("troupe_tier_misses_total", "Of those, the ones of which the device held less than lay below.", tier_misses);
  pair("troupe_tier_pages_loaded_total", "counter", "Pages that came up into the device, by the tier they came from.", "tier",
       {"host", value_of(tier_pages_up[0])}, {"disk", value_of(tier_pages_up[1])});
  total("troupe_tier_pages_stored_total", "Pages copied down.", tier_pages_down);
  pair("troupe_tier_bytes_moved_total", "counter", "Bytes of pages copied, by way.", "way", {"down", value_of(bytes_moved[0])},
       {"up", value_of(bytes_moved[1])});
  total("troupe_tier_pages_prefetched_total", "Of the loaded pages, those that nobody waited for.", tier_pages_prefetched);
  pair("troupe_tier_prefetches_total", "counter", "Prefetched pages, by whether a request found them before they were given up.",
       "used", {"yes", value_of(tier_prefetch_used)}, {"no", value_of(tier_prefetch_unused)});
  pair("troupe_tier_moves_failed_total", "counter", "Moves that failed: the copy was damaged, or the system refused.", "reason",
       {"damaged", value_of(tier_damaged)}, {"refused", value_of(tier_failed)});
  total("troupe_tier_evicted_total", "Copies given up for want of room.", tier_evicted);
  pair("troupe_tier_device_evictions_total", "counter", "Findable pages that left the device, by whether they lie below.",
       "below", {"yes", value_of(tier_clean_evicted)}, {"no", value_of(tier_lost)});
  const auto spent = overlap.read();
  const auto seconds = [&](std::string_view name, std::string_view help, std::chrono::nanoseconds time) {
    single(out, name, "counter", help, number(std::chrono::duration<double>(time).count()));
  };
  seconds("troupe_tier_copy_seconds_total", "Seconds in which pages were copied.", spent.copying);
  seconds("troupe_tier_copy_beside_steps_seconds_total", "Of those, while a step ran.", spent.beside_steps);
  seconds("troupe_tier_copy_hidden_seconds_total", "Of those, while a step ran or no request waited for a page.", spent.hidden);
}

} // namespace troupe
