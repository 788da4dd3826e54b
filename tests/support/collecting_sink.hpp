// A sink for tests: keeps all events, counts ends, lets a thread wait for the end.
#pragma once
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "io/edge.hpp"

namespace troupe::test {

class collecting_sink final : public event_sink {
public:
  void push(generation_event event) noexcept override {
    const std::lock_guard guard(lock_);
    if (ends_ > 0)
      ++after_end_;
    const bool end = std::holds_alternative<generation_finished>(event) || std::holds_alternative<generation_failed>(event);
    ends_ += end ? 1 : 0;
    events_.push_back(std::move(event));
    if (end)
      ended_.notify_all();
  }

  bool wait_end(std::chrono::seconds patience = std::chrono::seconds(60)) {
    std::unique_lock guard(lock_);
    return ended_.wait_for(guard, patience, [this] { return ends_ > 0; });
  }

  std::vector<generation_event> events() const {
    const std::lock_guard guard(lock_);
    return events_;
  }
  int ends() const {
    const std::lock_guard guard(lock_);
    return ends_;
  }
  int after_end() const {
    const std::lock_guard guard(lock_);
    return after_end_;
  }

  std::string text() const {
    std::string out;
    for (const auto& e : events())
      if (const auto* d = std::get_if<text_delta>(&e))
        out += d->text;
    return out;
  }
  std::string reasoning() const {
    std::string out;
    for (const auto& e : events())
      if (const auto* d = std::get_if<reasoning_delta>(&e))
        out += d->text;
    return out;
  }
  std::vector<tool_call> calls() const {
    std::vector<tool_call> out;
    for (const auto& e : events())
      if (const auto* d = std::get_if<tool_call_made>(&e))
        out.push_back(d->call);
    return out;
  }
  template <class Event>
  std::vector<Event> all() const {
    std::vector<Event> out;
    for (const auto& e : events())
      if (const auto* d = std::get_if<Event>(&e))
        out.push_back(*d);
    return out;
  }
  std::optional<generation_finished> finished() const {
    const auto found = all<generation_finished>();
    return found.empty() ? std::nullopt : std::optional(found.front());
  }
  std::optional<generation_failed> failed() const {
    const auto found = all<generation_failed>();
    return found.empty() ? std::nullopt : std::optional(found.front());
  }

private:
  mutable std::mutex lock_;
  std::condition_variable ended_;
  std::vector<generation_event> events_;
  int ends_ = 0;
  int after_end_ = 0;
};

} // namespace troupe::test
