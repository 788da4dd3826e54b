#include "io/event_inbox.hpp"

namespace troupe {

class inbox_sink final : public event_sink {
public:
  inbox_sink(std::shared_ptr<event_inbox> inbox, std::uint64_t run) : inbox_(std::move(inbox)), run_(run) {}
  void push(generation_event event) noexcept override { inbox_->push({run_, std::move(event)}); }

private:
  std::shared_ptr<event_inbox> inbox_;
  std::uint64_t run_;
};

namespace {

struct size_of_event {
  std::size_t operator()(const text_delta& e) const {
    std::size_t bytes = e.text.size();
    for (const text_logprob& each : e.logprobs) {
      bytes += sizeof each + each.token.size();
      for (const auto& top : each.top)
        bytes += sizeof top + top.first.size();
    }
    return bytes;
  }
  std::size_t operator()(const reasoning_delta& e) const { return e.text.size(); }
  std::size_t operator()(const tool_call_made& e) const { return e.call.name.size() + e.call.arguments.size(); }
  template <class Event>
  std::size_t operator()(const Event&) const {
    return 0;
  }
};

std::size_t bytes_of(const run_event& event) {
  const auto* generated = std::get_if<generation_event>(&event.event);
  return sizeof(run_event) + (generated ? std::visit(size_of_event{}, *generated) : 0);
}

bool join(run_event& first, run_event& second) {
  if (first.run != second.run || first.event.index() != 0 || second.event.index() != 0)
    return false;
  generation_event& into = std::get<generation_event>(first.event);
  generation_event& next = std::get<generation_event>(second.event);
  if (auto* a = std::get_if<text_delta>(&into))
    if (auto* b = std::get_if<text_delta>(&next)) {
      a->text += b->text;
      std::move(b->logprobs.begin(), b->logprobs.end(), std::back_inserter(a->logprobs));
      return true;
    }
  if (auto* a = std::get_if<reasoning_delta>(&into))
    if (auto* b = std::get_if<reasoning_delta>(&next)) {
      a->text += b->text;
      return true;
    }
  return false;
}

} // namespace

std::shared_ptr<event_sink> event_inbox::sink(std::uint64_t run) {
  return std::make_shared<inbox_sink>(shared_from_this(), run);
}

written_fn event_inbox::keeper(std::uint64_t run) {
  return [self = shared_from_this(), run](result<void> outcome) { self->push({run, keeping_ended{std::move(outcome)}}); };
}

void event_inbox::push(run_event event) noexcept {
  const std::lock_guard lock(mutex_);
  if (closed_)
    return;
  try {
    const std::size_t bytes = bytes_of(event);
    if (overflowed_)
      return;
    if (bytes_ + bytes > bytes_max_ || !held_.resize(bytes_ + bytes)) {
      overflowed_ = true;
      woken_ = false; // the connection may be busy writing; this can't wait
    } else {
      waiting_.push_back(std::move(event));
      bytes_ += bytes;
    }
    if (!woken_) {
      woken_ = true;
      wake_();
    }
  } catch (...) { // out of memory: the connection ends, as on any overflow
    overflowed_ = true;
  }
}

void event_inbox::take(std::vector<run_event>& out) {
  const std::lock_guard lock(mutex_);
  if (out.empty())
    out.swap(waiting_);
  else
    std::move(waiting_.begin(), waiting_.end(), std::back_inserter(out));
  waiting_.clear();
  bytes_ = 0;
  (void)held_.resize(0);
  woken_ = false;
}

bool event_inbox::overflowed() const {
  const std::lock_guard lock(mutex_);
  return overflowed_;
}

void event_inbox::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  wake_ = nullptr;
  waiting_.clear();
  (void)held_.resize(bytes_ = 0);
}

void join_deltas(std::vector<run_event>& events) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (kept > 0 && join(events[kept - 1], events[i]))
      continue;
    if (kept != i)
      events[kept] = std::move(events[i]);
    ++kept;
  }
  events.erase(events.begin() + static_cast<std::ptrdiff_t>(kept), events.end());
}

} // namespace troupe
