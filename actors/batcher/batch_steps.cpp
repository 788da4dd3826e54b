// What a step computes, and what follows from its result.
#include <algorithm>

#include "actors/batcher/batch_schedule.hpp"
#include "base/check.hpp"
#include "config/limits.hpp"

namespace troupe {

// Called after every input. Growth before admission: those that run come first.
void batch_schedule::advance(batch_actions& out) {
  grow_running(out);
  admit(out);
  start_step(out);
}

bool batch_schedule::runnable(const batch_sequence& s) const {
  return s.state == sequence_state::running && !s.ended && !s.preempt && !s.pages_lost && has_room(s);
}

namespace {

// The next `tokens` tokens of `s` are not a decode: a prompt's, or more than one.
bool reads_prompt(const batch_sequence& s, int tokens) {
  return tokens != 1 || s.computed + tokens <= s.request.prompt_length;
}

} // namespace

void batch_schedule::start_step(batch_actions& out) {
  if (step_ || !compute_ready_)
    return;
  std::vector<batch_sequence*> decodes, prefills;
  batch_sequence* reading = nullptr; // one a step
  batch_sequence* suspect = nullptr;
  for (batch_sequence* s : running_)
    if (runnable(*s)) {
      if (s->suspect && !suspect)
        suspect = s;
      if (s->to_be_read_again()) {
        if (!reading || s->last_step < reading->last_step)
          reading = s;
        continue;
      }
      (s->remaining() <= 1 ? decodes : prefills).push_back(s);
    }
  auto plan = std::make_shared<step_plan>();
  if (suspect) {
    add_to_plan(*plan, *suspect, config_.step_tokens);
  } else {
    // Where there are more decodes than fit, those that waited longest go first, and prefill keeps an eighth.
    std::stable_sort(decodes.begin(), decodes.end(), [](const auto* a, const auto* b) { return a->last_step < b->last_step; });
    std::sort(prefills.begin(), prefills.end(), [this](const auto* a, const auto* b) {
      return std::pair(rank(*a), a->serial) < std::pair(rank(*b), b->serial);
    });
    int left = config_.step_tokens;
    if (reading)
      left -= add_to_plan(*plan, *reading, left);
    const int kept = prefills.empty() || left == 1 ? 0 : std::max(1, left / 8);
    auto next = decodes.begin();
    for (; next != decodes.end() && left > kept; ++next, --left)
      add_to_plan(*plan, **next, 1);
    for (auto s = prefills.begin(); s != prefills.end() && left > 0; ++s)
      left -= add_to_plan(*plan, **s, left);
    for (; next != decodes.end() && left > 0; ++next, --left)
      add_to_plan(*plan, **next, 1);
  }
  if (plan->sequences.empty())
    return;
  plan->number = next_step_++;
  step_ = std::move(plan);
  ++counters_.steps;
  out.emplace_back(run_step{step_});
}

// At most `most` tokens; the answer is how many.
int batch_schedule::add_to_plan(step_plan& plan, batch_sequence& s, int most) {
  s.in_step = true;
  s.last_step = next_step_;
  if (s.copy)
    plan.copies.push_back(*s.copy);
  if (s.to_be_read_again()) {
    plan.sequences.push_back(reading_of(s));
    return static_cast<int>(plan.sequences.back().tokens.size());
  }
  if (s.eviction_due())
    plan.compactions.push_back(evict(s));
  const int tokens = std::min(s.room(), most);
  sequence_step part;
  part.id = s.request.id;
  part.tokens = s.slice(s.computed, s.computed + tokens);
  part.position = s.position();
  part.evicted = s.evicted;
  part.pages = s.pages;
  part.window = s.request.window;
  part.sample = tokens == s.remaining() && s.request.max_new_tokens > 0;
  if (part.sample) {
    part.sampling = s.request.sampling;
    part.counts = s.counts;
    part.keep_state = config_.prompt_states && tokens > 0 && reads_prompt(s, tokens) && !s.keeps_private();
    part.state = s.kept_state;
  }
  plan.sequences.push_back(std::move(part));
  return tokens;
}

batch_actions batch_schedule::step_done(const step_result& done) {
  batch_actions out;
  if (!step_ || step_->number != done.number) {
    ++counters_.late_answers;
    return out;
  }
  const auto plan = std::move(step_);
  step_.reset();
  counters_.step_seconds += done.seconds;
  TROUPE_CHECK(done.sequences.size() == plan->sequences.size());
  for (std::size_t i = 0; i < plan->sequences.size(); ++i) {
    batch_sequence* s = find(plan->sequences[i].id);
    TROUPE_CHECK(s && s->in_step && done.sequences[i].id == s->request.id);
    take_result(*s, plan->sequences[i], done.sequences[i], out);
    settle(*s, out);
  }
  advance(out);
  return out;
}

void batch_schedule::take_result(batch_sequence& s, const sequence_step& part, const sequence_result& result,
                                 batch_actions& out) {
  if (result.fault) {
    if (!s.ended)
      fail_request(s, *result.fault, out);
    return;
  }
  const int n = static_cast<int>(part.tokens.size());
  s.step_failures = 0;
  s.suspect = false;
  s.copied = s.copied || s.copy;
  s.copy.reset();
  if (part.scores != attention_score::none) {
    counters_.reread_tokens += static_cast<std::uint64_t>(n);
    take_scores(s, result.scores);
    return;
  }
  s.moving = false;
  const bool prefill = reads_prompt(s, n);
  (prefill ? counters_.prefill_tokens : counters_.decode_tokens) += static_cast<std::uint64_t>(n);
  s.computed += n;
  counters_.resumed += s.kept_state != nullptr;
  s.kept_state.reset();
  if (s.ended)
    return;
  if (prefill && !s.preempt && !s.pages_lost)
    publish(s, result.state, out);
  if (part.sample) {
    TROUPE_CHECK(result.token.has_value());
    take_token(s, *result.token, out);
  } else if (s.computed == s.length()) {
    finish(s, sequence_end::length, -1, out);
  }
}

void batch_schedule::take_token(batch_sequence& s, sampled_token token, batch_actions& out) {
  const auto& ends = s.request.end_tokens;
  if (!s.request.ignore_eos && std::find(ends.begin(), ends.end(), token.token) != ends.end()) {
    finish(s, sequence_end::end_token, token.token, out);
    return;
  }
  const int position = s.length();
  s.added.push_back(token.token);
  s.count(token.token, true);
  tokens_generated told{s.request.id, position, {}, !s.answering, s.usage()};
  told.tokens.push_back(std::move(token));
  s.answering = true;
  out.emplace_back(std::move(told));
  if (s.length() >= length_max(s))
    finish(s, sequence_end::length, -1, out);
}

// The step is over for `s`: what waited for that happens now.
void batch_schedule::settle(batch_sequence& s, batch_actions& out) {
  s.in_step = false;
  if (s.ended) {
    release(s, out);
    forget(s);
  } else if (s.pages_lost || s.preempt) {
    requeue(s, out);
  }
}

batch_actions batch_schedule::step_failed(std::uint64_t number, const error& fault) {
  batch_actions out;
  if (!step_ || step_->number != number) {
    ++counters_.late_answers;
    return out;
  }
  fail_step(&fault, out);
  advance(out);
  return out;
}

// The pages are good up to where each sequence stood before the step, so each goes on from there, once, and alone.
// `blame`: what the device reported; null where the compute stream's death is nobody's fault.
void batch_schedule::fail_step(const error* blame, batch_actions& out) {
  const auto plan = std::move(step_);
  step_.reset();
  ++counters_.failed_steps;
  for (const auto& part : plan->sequences) {
    batch_sequence* s = find(part.id);
    TROUPE_CHECK(s && s->in_step);
    if (blame) {
      s->suspect = true;
      if (++s->step_failures >= limits::step_failures_max && !s->ended)
        fail_request(*s, fail(errc::device_failed, "the compute device failed twice: " + blame->message), out);
    }
    s->preempt = s->preempt || s->moving; // its pages are undefined
    settle(*s, out);
  }
}

batch_actions batch_schedule::compute_ready() {
  batch_actions out;
  compute_ready_ = true;
  advance(out);
  return out;
}

batch_actions batch_schedule::compute_lost() {
  batch_actions out;
  compute_ready_ = false;
  if (step_)
    fail_step(nullptr, out);
  advance(out);
  return out;
}

} // namespace troupe
