// A runtime for the edge's tests: it answers from a script, on a thread of its own, always the same way.
//
// What it answers depends on the last user message (or the prompt) alone:
//   "say X"            X, a word a delta
//   "count N"          "1 2 ... N ", a number a delta
//   "slow N"           as count, with a pause of 5 ms before each delta
//   "hold"             starts, then generates nothing until it is cancelled
//   "wait"             is accepted, but never starts until it is cancelled
//   "think X"          reasoning "Let me think." and then X
//   "tool"             calls get_weather {"city":"Paris"}
//   "fail"             fails before it starts, with context_full
//   "break"            starts, says a word, fails with device_failed
//   "refuse full|down|dead"  submit itself refuses: queue_full, shutting_down, unavailable
//   "flood N"          N kilobytes of text as fast as they can be pushed
//   "last"             the text of the message before: shows what conversation arrived
//   "system"           the text of the first system message
//   anything else      "Hello from the fake."
// max_tokens and stop strings are kept to. The prompt has a token a word; the second request with the same first message has
// that many cached tokens.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>

#include "io/edge.hpp"

namespace troupe::testing {

class fake_port final : public edge_port {
public:
  fake_port() : worker_([this] { work(); }) {}
  ~fake_port() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    worker_.join();
  }

  result<std::uint64_t> submit(generation_request request, std::shared_ptr<event_sink> sink) override {
    const std::string wish = wish_of(request);
    if (wish == "refuse full")
      return fail(errc::queue_full, "The queue is full.");
    if (wish == "refuse down")
      return fail(errc::shutting_down, "The server shuts down.");
    if (wish == "refuse dead")
      return fail(errc::unavailable, "A part is being restarted.");
    std::uint64_t number = 0;
    {
      const std::lock_guard lock(mutex_);
      number = ++numbers_;
      last_request_ = request;
      jobs_.push_back(make_job(number, std::move(request), std::move(sink)));
      ++running_;
    }
    changed_.notify_all();
    return number;
  }

  result<std::vector<std::uint64_t>> submit_choices(generation_request request,
                                                    std::vector<std::shared_ptr<event_sink>> sinks) override {
    std::vector<std::uint64_t> numbers;
    for (auto& sink : sinks)
      if (auto number = submit(request, std::move(sink)))
        numbers.push_back(*number);
      else
        return number.fault();
    return numbers;
  }

  void cancel(std::uint64_t request) noexcept override {
    {
      const std::lock_guard lock(mutex_);
      cancelled_.insert(request);
      ++cancels_;
    }
    changed_.notify_all();
  }

  served_model model() const override { return {"fake-model", 4096, "", 1'700'000'000}; }
  health_state health(std::string& why) const override {
    const std::lock_guard lock(mutex_);
    why = why_;
    return health_;
  }
  std::string metrics_text() const override {
    return "# TYPE fake_running gauge\nfake_running " + std::to_string(running()) +
           "\n# TYPE troupe_kv_pages gauge\ntroupe_kv_pages{state=\"free\"} 64\ntroupe_kv_pages{state=\"used\"} 0\n";
  }

  // What the tests look at.
  int running() const {
    const std::lock_guard lock(mutex_);
    return running_;
  }
  int cancels() const {
    const std::lock_guard lock(mutex_);
    return cancels_;
  }
  generation_request last_request() const {
    const std::lock_guard lock(mutex_);
    return last_request_;
  }
  void set_health(health_state state, std::string why) {
    const std::lock_guard lock(mutex_);
    health_ = state;
    why_ = std::move(why);
  }
  // Returns when nothing runs any more, or false after `timeout`.
  bool wait_until_idle(std::chrono::milliseconds timeout) const {
    std::unique_lock lock(mutex_);
    return idle_.wait_for(lock, timeout, [this] { return running_ == 0; });
  }

private:
  struct job {
    std::uint64_t number = 0;
    std::shared_ptr<event_sink> sink;
    std::deque<generation_event> events;
    std::chrono::milliseconds pause{0};
    std::chrono::steady_clock::time_point due{};
    bool holds = false; // after its events, until cancelled
    token_usage usage;
  };

  static std::string wish_of(const generation_request& request) {
    if (request.prompt)
      return *request.prompt;
    for (auto it = request.messages.rbegin(); it != request.messages.rend(); ++it)
      if (it->role == "user")
        return it->content;
    return {};
  }

  static std::vector<std::string> words_of(const std::string& text) {
    std::istringstream in(text);
    std::vector<std::string> words;
    for (std::string word; in >> word;)
      words.push_back(word);
    return words;
  }

  job make_job(std::uint64_t number, generation_request request, std::shared_ptr<event_sink> sink) {
    job out;
    out.number = number;
    out.sink = std::move(sink);
    const std::string wish = wish_of(request);
    std::string all = request.prompt.value_or("");
    for (const chat_message& message : request.messages)
      all += message.content + " ";
    out.usage.prompt_tokens = static_cast<int>(words_of(all).size() + request.prompt_tokens.size());
    const std::string first = request.messages.empty() ? all : request.messages.front().content;
    out.usage.cached_tokens = seen_.insert(first).second ? 0 : static_cast<int>(words_of(first).size());
    if (wish == "fail") {
      out.events.push_back(
          generation_failed{{errc::context_full, "The prompt has more tokens than the context holds."}, out.usage});
      return out;
    }
    if (wish == "wait") {
      out.holds = true;
      return out;
    }
    out.events.push_back(generation_started{out.usage.prompt_tokens, out.usage.cached_tokens});
    if (wish == "hold") {
      out.holds = true;
      return out;
    }
    write_script(wish, request, out);
    return out;
  }

  static void write_script(const std::string& wish, const generation_request& request, job& out) {
    const auto rest = [&](std::size_t from) { return wish.size() > from ? wish.substr(from) : std::string(); };
    std::vector<std::string> deltas;
    finish_reason reason = finish_reason::stop;
    if (wish.rfind("say ", 0) == 0) {
      for (const std::string& word : words_of(rest(4)))
        deltas.push_back(deltas.empty() ? word : " " + word);
    } else if (wish.rfind("count ", 0) == 0 || wish.rfind("slow ", 0) == 0) {
      const int count = std::stoi(rest(wish.find(' ') + 1));
      out.pause = std::chrono::milliseconds(wish.rfind("slow ", 0) == 0 ? 5 : 0);
      for (int i = 1; i <= count; ++i)
        deltas.push_back(std::to_string(i) + " ");
    } else if (wish.rfind("think ", 0) == 0) {
      if (request.enable_thinking.value_or(true))
        for (const char* part : {"Let", " me", " think."})
          out.events.push_back(reasoning_delta{part}), ++out.usage.reasoning_tokens;
      deltas.push_back(rest(6));
    } else if (wish == "tool") {
      out.events.push_back(tool_call_made{{"call_1", "get_weather", R"({"city":"Paris"})"}});
      reason = finish_reason::tool_calls;
    } else if (wish == "break") {
      deltas.push_back("Oh");
    } else if (wish.rfind("flood ", 0) == 0) {
      for (int i = std::stoi(rest(6)); i > 0; --i)
        deltas.push_back(std::string(1024, 'x'));
    } else if (wish == "last") {
      deltas.push_back(request.messages.size() > 1 ? request.messages[request.messages.size() - 2].content : "none");
    } else if (wish == "system") {
      deltas.push_back(!request.messages.empty() && request.messages[0].role == "system" ? request.messages[0].content
                                                                                         : "none");
    } else {
      deltas = {"Hello", " from", " the", " fake."};
    }
    write_deltas(deltas, request, reason, out);
    out.usage.completion_tokens += out.usage.reasoning_tokens;
    if (wish == "break")
      out.events.push_back(generation_failed{{errc::device_failed, "The device failed."}, out.usage});
    else
      out.events.push_back(generation_finished{reason, out.usage});
  }

  static void write_deltas(const std::vector<std::string>& deltas, const generation_request& request, finish_reason& reason,
                           job& out) {
    std::string text;
    for (const std::string& delta : deltas) {
      if (request.max_tokens && out.usage.completion_tokens >= *request.max_tokens) {
        reason = finish_reason::length;
        return;
      }
      std::string kept = delta;
      for (const std::string& stop : request.stop)
        if (const std::size_t at = (text + kept).find(stop); at != std::string::npos)
          kept = (text + kept).substr(text.size(), at > text.size() ? at - text.size() : 0);
      ++out.usage.completion_tokens;
      if (!kept.empty()) {
        text_delta event{kept, {}};
        if (request.sampling.logprobs) {
          text_logprob value{kept, -0.5f, {}};
          for (int i = 0; i < request.sampling.top_logprobs; ++i)
            value.top.emplace_back(i == 0 ? kept : "other" + std::to_string(i), -0.5f - static_cast<float>(i));
          event.logprobs.push_back(std::move(value));
        }
        out.events.push_back(std::move(event));
      }
      text += kept;
      if (kept != delta)
        return;
    }
  }

  void end(job& of, generation_event event) {
    of.sink->push(std::move(event));
    of.sink.reset();
    --running_;
    idle_.notify_all();
  }

  // One event of each job in turn, as a batch of sequences would.
  void work() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      const auto now = std::chrono::steady_clock::now();
      auto next_due = std::chrono::steady_clock::time_point::max();
      for (job& each : jobs_) {
        if (cancelled_.count(each.number)) {
          end(each, generation_finished{finish_reason::cancelled, each.usage});
          continue;
        }
        if (each.events.empty() || each.due > now) {
          if (!each.events.empty())
            next_due = std::min(next_due, each.due);
          continue;
        }
        generation_event event = std::move(each.events.front());
        each.events.pop_front();
        each.due = now + each.pause;
        if (each.events.empty() && !each.holds)
          end(each, std::move(event));
        else {
          each.sink->push(std::move(event));
          if (!each.events.empty())
            next_due = std::min(next_due, each.due);
        }
      }
      std::erase_if(jobs_, [](const job& each) { return !each.sink; });
      const bool more =
          std::any_of(jobs_.begin(), jobs_.end(), [this](const job& each) { return cancelled_.count(each.number) != 0; });
      if (more || next_due <= std::chrono::steady_clock::now()) {
        lock.unlock(); // others get the mutex
        lock.lock();
      } else if (next_due == std::chrono::steady_clock::time_point::max()) {
        changed_.wait(lock);
      } else {
        changed_.wait_until(lock, next_due);
      }
    }
    for (job& each : jobs_)
      end(each, generation_failed{{errc::shutting_down, "The fake ends."}, each.usage});
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  mutable std::condition_variable idle_;
  std::deque<job> jobs_;
  std::set<std::uint64_t> cancelled_;
  std::set<std::string> seen_;
  generation_request last_request_;
  std::uint64_t numbers_ = 0;
  int running_ = 0;
  int cancels_ = 0;
  health_state health_ = health_state::ready;
  std::string why_;
  bool stopping_ = false;
  std::thread worker_;
};

} // namespace troupe::testing
