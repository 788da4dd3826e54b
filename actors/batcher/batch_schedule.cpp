// Inputs and ends of requests; what follows for pages is in batch_memory.cpp, for steps in batch_steps.cpp.
#include "actors/batcher/batch_schedule.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "config/limits.hpp"
#include "memory/kv_shard_memory.hpp"

namespace troupe {

batch_schedule::batch_schedule(batch_schedule_config config)
    : config_(std::move(config)), affinity_(config_.shard_pages.size()) {
  TROUPE_CHECK(!config_.shard_pages.empty() && config_.shard_pages.size() <= static_cast<std::size_t>(limits::kv_shards_max));
  TROUPE_CHECK(config_.running_max >= 1 && config_.running_max <= limits::running_sequences_max);
  TROUPE_CHECK(config_.waiting_max >= 1 && config_.waiting_max <= limits::waiting_requests_max + limits::running_sequences_max);
  TROUPE_CHECK(config_.step_tokens >= 1 && config_.step_tokens <= limits::step_tokens_max);
  TROUPE_CHECK(config_.first_reservation_tokens >= 1 && config_.admission_lookahead_tokens >= 0);
  for (const auto pages : config_.shard_pages) {
    TROUPE_CHECK(pages >= 1 && pages <= limits::kv_pages_max);
    shards_.emplace_back().pages = pages;
  }
}

std::optional<error> batch_schedule::refusal(const batch_request& r) const {
  if (draining_ && r.id.generation == 0)
    return fail(errc::shutting_down, "the server is shutting down");
  if (!r.tokens || r.tokens->empty() || r.prompt_length < 1 || r.prompt_length > static_cast<int>(r.tokens->size()))
    return fail(errc::invalid_argument, "the prompt is empty");
  if (!r.sampling)
    return fail(errc::invalid_argument, "the sampling parameters are missing");
  if (r.max_new_tokens < 0)
    return fail(errc::invalid_argument, "max_tokens is negative");
  if (r.end_tokens.size() > static_cast<std::size_t>(limits::end_tokens_max))
    return fail(errc::invalid_argument, "more than " + std::to_string(limits::end_tokens_max) + " end tokens");
  if (r.priority < -limits::priority_max || r.priority > limits::priority_max)
    return fail(errc::invalid_argument, "priority is outside -" + std::to_string(limits::priority_max) + ".." +
                                            std::to_string(limits::priority_max));
  if (auto why = budget_refusal(r))
    return why;
  if (auto why = window_refusal(r))
    return why;
  const bool goes_on = r.window.bounded() || r.budget_tokens > 0;
  if (!goes_on && r.prompt_length > r.context_tokens - (r.max_new_tokens > 0 ? 1 : 0))
    return fail(errc::context_full, "the prompt has " + std::to_string(r.prompt_length) + " tokens, the context holds " +
                                        std::to_string(r.context_tokens));
  const auto pages = *std::min_element(config_.shard_pages.begin(), config_.shard_pages.end());
  if (!goes_on && pages_for(static_cast<int>(r.tokens->size())) > pages)
    return fail(errc::no_memory, "the prompt has " + std::to_string(r.tokens->size()) + " tokens, the KV memory holds " +
                                     std::to_string(pages * static_cast<std::uint32_t>(limits::page_tokens)) + " a sequence");
  const auto fresh = std::count_if(sequences_.begin(), sequences_.end(), [](const auto& entry) {
    const auto& s = *entry.second;
    return s.state != sequence_state::running && s.cached_tokens < 0 && !s.ended;
  });
  const int room = config_.waiting_max + (r.id.generation > 0 ? config_.running_max : 0);
  if (fresh >= room)
    return fail(errc::queue_full, std::to_string(fresh) + " requests are waiting; try again later");
  return std::nullopt;
}

batch_actions batch_schedule::submit(batch_request request, steady_time now) {
  batch_actions out;
  if (const auto known = current_.find(request.id.number); known != current_.end()) {
    if (known->second == request.id)
      return out;
    if (known->second.generation > request.id.generation) {
      ++counters_.refused;
      out.emplace_back(request_failed{request.id, fail(errc::cancelled, "a newer run of the request exists"), {}});
      return out;
    }
    out = cancel(known->second);
  }
  if (auto why = refusal(request)) {
    ++counters_.refused;
    out.emplace_back(request_failed{request.id, std::move(*why), {std::max(request.prompt_length, 0), 0, 0}});
    return out;
  }
  if (!origin_)
    origin_ = now;
  auto owned = std::make_unique<batch_sequence>();
  batch_sequence& s = *owned;
  s.request = std::move(request);
  s.serial = next_serial_++;
  s.arrival = std::chrono::duration<double>(now - *origin_).count();
  s.base = s.request.tokens;
  s.refused_at.resize(shards_.size());
  for (int i = 0; i < s.length(); ++i)
    s.count(s.token(i), i >= s.request.prompt_length);
  ++counters_.submitted;
  current_.emplace(s.request.id.number, s.request.id);
  sequences_.emplace(s.request.id, std::move(owned));
  waiting_.push_back(&s);
  if (s.length() >= length_max(s) && s.request.max_new_tokens > 0) // submitted again at its very end
    finish(s, sequence_end::length, -1, out);
  advance(out);
  return out;
}

batch_actions batch_schedule::cancel(request_id id) {
  batch_actions out;
  if (batch_sequence* s = find(id); s && !s->ended) {
    ++counters_.cancelled;
    finish(*s, sequence_end::cancelled, -1, out);
    advance(out);
  }
  return out;
}

batch_actions batch_schedule::abort_all(const error& fault) {
  std::vector<batch_sequence*> live;
  for (const auto& [id, s] : sequences_)
    if (!s->ended)
      live.push_back(s.get());
  std::sort(live.begin(), live.end(), [](const auto* a, const auto* b) { return a->serial < b->serial; });
  batch_actions out;
  for (batch_sequence* s : live)
    fail_request(*s, fault, out);
  return out;
}

void batch_schedule::finish(batch_sequence& s, sequence_end reason, token_id end_token, batch_actions& out) {
  request_finished told{s.request.id, reason, end_token, s.usage()};
  told.usage.completion_tokens += reason == sequence_end::end_token;
  ++counters_.finished;
  end(s, out);
  out.emplace_back(std::move(told));
}

void batch_schedule::fail_request(batch_sequence& s, error fault, batch_actions& out) {
  request_failed told{s.request.id, std::move(fault), s.usage()};
  ++counters_.failed;
  end(s, out);
  out.emplace_back(std::move(told));
}

// Nobody hears of it any more. Its pages stay while a step may write them.
void batch_schedule::end(batch_sequence& s, batch_actions& out) {
  TROUPE_CHECK(!s.ended);
  s.ended = true;
  current_.erase(s.request.id.number);
  if (s.in_step)
    return;
  release(s, out);
  forget(s);
}

void batch_schedule::forget(batch_sequence& s) {
  TROUPE_CHECK(s.ended && !s.in_step && s.lease == 0);
  std::erase(s.state == sequence_state::waiting ? waiting_ : running_, &s);
  sequences_.erase(request_id(s.request.id));
}

batch_sequence* batch_schedule::find(request_id id) {
  const auto found = sequences_.find(id);
  return found == sequences_.end() ? nullptr : found->second.get();
}

batch_schedule_stats batch_schedule::stats() const {
  batch_schedule_stats s = counters_;
  s.waiting = static_cast<std::uint32_t>(waiting_.size());
  s.running = static_cast<std::uint32_t>(running_.size());
  for (const auto* each : running_)
    s.prefilling += each->state == sequence_state::running && each->remaining() > 1;
  return s;
}

void batch_schedule::check_invariants() const {
  TROUPE_CHECK(running_.size() <= static_cast<std::size_t>(config_.running_max));
  TROUPE_CHECK(waiting_.size() + running_.size() == sequences_.size());
  std::size_t leases = 0, in_step = 0, live = 0;
  std::unordered_map<page_id, int> owners;
  for (const auto& [id, owned] : sequences_) {
    const batch_sequence& s = *owned;
    TROUPE_CHECK(id == s.request.id);
    const auto& list = s.state == sequence_state::waiting ? waiting_ : running_;
    TROUPE_CHECK(std::count(list.begin(), list.end(), &s) == 1);
    live += !s.ended;
    TROUPE_CHECK(!s.ended || s.in_step); // an ended one is kept for its step alone
    const auto known = current_.find(id.number);
    TROUPE_CHECK((known != current_.end() && known->second == id) == !s.ended);
    TROUPE_CHECK(0 <= s.published && s.published <= s.computed && s.computed < s.length() + (s.kept_state ? 1 : 0));
    TROUPE_CHECK(s.published % limits::page_tokens == 0);
    if (s.lease != 0) {
      ++leases;
      const auto held = leases_.find(s.lease);
      TROUPE_CHECK(held != leases_.end() && held->second == &s && shards_[s.shard].ready);
    }
    switch (s.state) {
    case sequence_state::waiting: TROUPE_CHECK(s.lease == 0 && !s.pages && !s.in_step && s.computed == 0); break;
    case sequence_state::reserving: TROUPE_CHECK(s.lease != 0 && !s.pages && !s.in_step); break;
    case sequence_state::running:
      TROUPE_CHECK(s.pages && (s.lease != 0) == !s.pages_lost && s.position() <= s.capacity());
      TROUPE_CHECK(!s.pages_lost || s.in_step);
      if (!s.pages_lost) // what is not published yet may be written: by one sequence alone
        for (std::size_t i = static_cast<std::size_t>(s.published / limits::page_tokens); i < s.pages->size(); ++i)
          TROUPE_CHECK((*s.pages)[i] == no_page || ++owners[(*s.pages)[i]] == 1);
    }
    in_step += s.in_step;
  }
  for (const auto* s : running_)
    if (s->pages && !s->pages_lost)
      for (int i = 0; i < s->published / limits::page_tokens; ++i)
        TROUPE_CHECK(!owners.contains((*s->pages)[static_cast<std::size_t>(i)]));
  TROUPE_CHECK(leases == leases_.size() && live == current_.size());
  TROUPE_CHECK(in_step == (step_ ? step_->sequences.size() : 0));
  std::size_t reservations = 0;
  for (const auto& view : shards_) {
    TROUPE_CHECK(view.ready || (view.asks.empty() && view.releases.empty()));
    for (const auto& [lease, ask] : view.asks)
      reservations += ask.reservation;
  }
  TROUPE_CHECK(reservations <= static_cast<std::size_t>(limits::reservations_outstanding_max));
}

} // namespace troupe
