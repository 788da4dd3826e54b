// One client's claim to an answer: its sink, its place among the requests in flight, and its one end.
//
// Owns: the sink and one unit of in_flight. Promises: after any number of pushes the sink gets exactly one finished or failed,
// then nothing, whatever dies; a ticket that is destroyed without an end fails with errc::unavailable. The unit is given back
// before the end event is pushed, so that a client who answers the end with a new request is not refused.
// Threads: any. The lock is contended only when a deadline or a death cuts a live session short.
#pragma once
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "base/clock.hpp"
#include "io/edge.hpp"

namespace troupe {

class company_front;
class metrics_registry;

// How many requests are between submit and their end. Limit: given at construction; beyond it try_enter refuses.
class in_flight {
public:
  explicit in_flight(int limit) : limit_(limit) {}

  bool try_enter(int requests = 1) noexcept; // all of them or none
  void leave() noexcept;
  int count() const noexcept { return count_.load(std::memory_order_relaxed); }
  int limit() const noexcept { return limit_; }
  // Waits until none is left; false when the deadline came first.
  bool wait_none(std::chrono::steady_clock::time_point deadline);

private:
  const int limit_;
  std::atomic<int> count_{0};
  std::mutex lock_;
  std::condition_variable none_;
};

struct ticket_parts {
  std::uint64_t number = 0;
  std::shared_ptr<event_sink> sink;
  std::shared_ptr<in_flight> slots; // entered already
  std::shared_ptr<metrics_registry> metrics;
  std::shared_ptr<company_front> front; // forgets the ticket when it goes; may be absent
  clock_fn clock;
};

class request_ticket {
public:
  explicit request_ticket(ticket_parts parts);
  ~request_ticket();
  request_ticket(const request_ticket&) = delete;
  request_ticket& operator=(const request_ticket&) = delete;

  std::uint64_t number() const noexcept { return parts_.number; }
  steady_time submitted_at() const noexcept { return submitted_at_; }

  // started or a delta; dropped once ended.
  void push(generation_event event) noexcept;
  // The end. The first call counts; later ones are ignored and answer false.
  bool finish(finish_reason reason) noexcept;
  bool fail(error fault) noexcept;
  bool ended() const noexcept;

  // What the end event will report.
  void count(const token_usage& usage) noexcept;

  void request_cancel() noexcept {
    cancel_.store(true, std::memory_order_release);
    unwanted_->store(true, std::memory_order_relaxed);
  }
  bool cancel_requested() const noexcept { return cancel_.load(std::memory_order_acquire); }
  // True once the request was cancelled or has ended; outlives the ticket.
  std::shared_ptr<const std::atomic<bool>> unwanted() const noexcept { return unwanted_; }

private:
  bool end(generation_event event, std::string_view outcome) noexcept;

  const ticket_parts parts_;
  const steady_time submitted_at_;
  mutable std::mutex lock_;
  token_usage usage_;
  bool ended_ = false;
  std::atomic<bool> cancel_{false};
  const std::shared_ptr<std::atomic<bool>> unwanted_ = std::make_shared<std::atomic<bool>>(false);
};

using ticket_ptr = std::shared_ptr<request_ticket>;

} // namespace troupe
