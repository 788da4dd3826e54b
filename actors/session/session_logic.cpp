#include "actors/session/session_logic.hpp"

#include <algorithm>

#include "actors/session/sampling_choice.hpp"
#include "base/check.hpp"
#include "base/random.hpp"
#include "config/limits.hpp"

namespace troupe {

std::uint64_t salt_of(std::string_view tenant, std::uint64_t secret) {
  std::uint64_t hash = 0xcbf29ce484222325ull; // FNV-1a, then keyed: a client can't guess another tenant's
  for (const char c : tenant)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return random_at(secret, hash);
}

namespace {

// A chat whose template lets the model think starts a think block unless told not to.
bool splits_thinking(const runtime_context& context, const generation_request& request) {
  return !request.messages.empty() && context.chat && context.chat->thinks();
}

} // namespace

session_logic::session_logic(session_parts parts) : parts_(std::move(parts)) {
  id_ = {parts_.ticket->number(), 0};
}

batch_request_ptr session_logic::prepared(const prepared_prompt& prompt) {
  if (state_ != state::preparing)
    return nullptr;
  const auto& context = *parts_.context;
  const auto& request = *parts_.request;
  if (prompt.fault) {
    if (prompt.fault->code == errc::cancelled)
      cancel();
    else
      fail(*prompt.fault);
    return nullptr;
  }

  tokens_ = prompt.tokens;
  const auto fit = choose_context(request.overflow.value_or(context.overflow), context_tokens(), context.sink_tokens,
                                  request.max_tokens, tokens_);
  if (!fit) {
    fail(fit.fault());
    return nullptr;
  }
  fit_ = *fit;
  prompt_length_ = static_cast<int>(tokens_.size());

  const bool thinks = splits_thinking(context, request) && (prompt.thinking_open || request.enable_thinking.value_or(true));
  const auto& defaults = thinks && context.defaults.thinking ? *context.defaults.thinking : context.defaults.answer;
  auto sampling = choose_sampling(request.sampling, defaults, context.tokens->size(), context.draw());
  if (!sampling) {
    fail(sampling.fault());
    return nullptr;
  }
  sampling_ = std::make_shared<const sampling_params>(std::move(*sampling));

  answer_rules rules;
  rules.marks = context.marks;
  rules.split_thinking = splits_thinking(context, request);
  rules.thinking_open = prompt.thinking_open;
  rules.collect_tool_calls = !request.tools.empty() && !request.messages.empty();
  rules.logprobs = request.sampling.logprobs;
  rules.stops = request.stop;
  rules.call_key = random_at(context.call_key, number());
  answer_.emplace(*context.tokens, std::move(rules));
  state_ = state::submitted;
  return submission();
}

batch_request_ptr session_logic::resubmission() {
  if (state_ != state::submitted)
    return nullptr;
  if (id_.generation >= static_cast<std::uint32_t>(limits::resubmissions_max)) {
    fail({errc::unavailable, "the request was started again " + std::to_string(id_.generation) + " times; send it again"});
    return nullptr;
  }
  ++id_.generation;
  parts_.context->metrics->resubmissions.fetch_add(1, std::memory_order_relaxed);
  return submission();
}

batch_request_ptr session_logic::submission() {
  const auto& request = *parts_.request;
  auto out = std::make_shared<batch_request>();
  out->id = id_;
  out->tokens = std::make_shared<const std::vector<token_id>>(tokens_);
  out->prompt_length = prompt_length_;
  out->max_new_tokens = fit_.max_new_tokens;
  out->context_tokens = context_tokens();
  out->window = fit_.window;
  out->ring_pages = fit_.ring_pages;
  out->budget_tokens = fit_.budget_tokens;
  out->keep_percent = parts_.context->keep_percent;
  out->end_tokens = parts_.context->end_tokens;
  out->ignore_eos = request.ignore_eos;
  out->sampling = sampling_;
  out->priority = request.priority;
  out->tenant = request.tenant;
  out->pin = request.pin_prompt;
  out->salt = salt_of(request.tenant, parts_.context->secret);
  return out;
}

void session_logic::generated(const tokens_generated& news) {
  if (!current(news.id))
    return;
  TROUPE_CHECK(news.position == static_cast<int>(tokens_.size()));
  begin(news.usage.cached_tokens);
  note_dropped(news.usage.dropped_tokens);
  note_time(news.tokens.size());
  std::vector<generation_event> events;
  for (const auto& sampled : news.tokens) {
    tokens_.push_back(sampled.token);
    ++counted_tokens_;
    if (!answer_->push(sampled, events)) {
      flush(events);
      abandoned_ = id_;
      end_with(finish_reason::stop);
      return;
    }
  }
  count_usage();
  flush(events);
}

void session_logic::finished(const request_finished& news) {
  if (!current(news.id))
    return;
  begin(news.usage.cached_tokens);
  note_dropped(news.usage.dropped_tokens);
  if (news.reason == sequence_end::end_token) {
    ++counted_tokens_;
    parts_.context->metrics->generated_tokens.fetch_add(1, std::memory_order_relaxed);
  }
  std::vector<generation_event> events;
  answer_->finish(events);
  flush(events);
  switch (news.reason) {
  case sequence_end::end_token: return end_with(answer_->called_tools() ? finish_reason::tool_calls : finish_reason::stop);
  case sequence_end::length: return end_with(finish_reason::length);
  case sequence_end::cancelled: return end_with(finish_reason::cancelled);
  }
}

void session_logic::failed(const request_failed& news) {
  if (!current(news.id))
    return;
  fail(news.fault);
  abandoned_.reset(); // the batcher knows
}

void session_logic::cancel() {
  if (state_ == state::submitted)
    abandoned_ = id_;
  if (state_ != state::ended)
    end_with(finish_reason::cancelled);
}

void session_logic::fail(error fault) {
  if (state_ == state::ended)
    return;
  if (state_ == state::submitted)
    abandoned_ = id_;
  count_usage();
  state_ = state::ended;
  parts_.ticket->fail(std::move(fault));
}

// The first news of the first run that has any: the prompt is read.
void session_logic::begin(int cached_tokens) {
  if (started_)
    return;
  started_ = true;
  cached_tokens_ = cached_tokens;
  auto& metrics = *parts_.context->metrics;
  metrics.dropped_tokens.fetch_add(static_cast<std::uint64_t>(fit_.dropped_tokens), std::memory_order_relaxed);
  count_usage();
  metrics.prompt_tokens.fetch_add(static_cast<std::uint64_t>(prompt_length_), std::memory_order_relaxed);
  metrics.cached_tokens.fetch_add(static_cast<std::uint64_t>(cached_tokens_), std::memory_order_relaxed);
  parts_.ticket->push(generation_started{prompt_length_, cached_tokens_});
}

// The window hides `tokens` by now. The first that is dropped tells that the turn has outgrown its context.
void session_logic::note_dropped(int tokens) {
  auto& metrics = *parts_.context->metrics;
  if (!outgrown_ && fit_.dropped_tokens + tokens > 0) {
    outgrown_ = true;
    metrics.contexts_outgrown.fetch_add(1, std::memory_order_relaxed);
  }
  if (tokens <= hidden_tokens_)
    return;
  metrics.dropped_tokens.fetch_add(static_cast<std::uint64_t>(tokens - hidden_tokens_), std::memory_order_relaxed);
  hidden_tokens_ = tokens;
}

int session_logic::context_tokens() const noexcept {
  return std::min(parts_.request->context_tokens.value_or(parts_.context->context_tokens), parts_.context->context_tokens);
}

void session_logic::flush(std::vector<generation_event>& events) {
  for (auto& event : events)
    parts_.ticket->push(std::move(event));
  events.clear();
}

void session_logic::count_usage() {
  parts_.ticket->count({prompt_length_, cached_tokens_, counted_tokens_, answer_ ? answer_->reasoning_tokens() : 0,
                        fit_.dropped_tokens + hidden_tokens_});
}

void session_logic::end_with(finish_reason reason) {
  count_usage();
  state_ = state::ended;
  parts_.ticket->finish(reason);
}

void session_logic::note_time(std::size_t tokens) {
  if (tokens == 0)
    return;
  auto& metrics = *parts_.context->metrics;
  metrics.generated_tokens.fetch_add(tokens, std::memory_order_relaxed);
  const auto now = parts_.context->clock();
  if (last_token_at_)
    metrics.inter_token.observe((now - *last_token_at_) / static_cast<int>(tokens));
  else
    metrics.first_token.observe(now - parts_.ticket->submitted_at());
  last_token_at_ = now;
}

void session_logic::check_invariants() const {
  TROUPE_CHECK(prompt_length_ <= static_cast<int>(tokens_.size()) || state_ != state::submitted);
  TROUPE_CHECK(state_ != state::submitted || (answer_ && sampling_));
  TROUPE_CHECK(tokens_generated_so_far() <= fit_.max_new_tokens || state_ == state::preparing || state_ == state::ended);
  TROUPE_CHECK(!ended() || parts_.ticket->ended());
  TROUPE_CHECK(!abandoned_ || ended());
}

} // namespace troupe
