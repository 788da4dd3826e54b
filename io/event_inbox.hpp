// Where the events of one connection's requests wait for its thread.
//
// Owns the events that were pushed and not yet taken, at most `bytes_max` of them and as many as `budget` has room for: beyond,
// they are dropped, overflowed() stays true, and the connection cancels. Promises: push never blocks on more than this inbox's mutex, never throws; the
// wake function is called once per batch, and never again after close(). sinks and keepers from any thread,
// the rest from the connection's.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/record_store.hpp"
#include "io/byte_budget.hpp"
#include "io/edge.hpp"

namespace troupe {

// How the keeping of what a request made or unmade ended; comes after the request's end.
struct keeping_ended {
  result<void> outcome;
};

struct run_event {
  std::uint64_t run; // which of the connection's requests
  std::variant<generation_event, keeping_ended> event;
};

class event_inbox : public std::enable_shared_from_this<event_inbox> {
public:
  // `wake` runs under the inbox's mutex, on the pushing thread: it may only post.
  event_inbox(std::size_t bytes_max, byte_budget& budget, std::function<void()> wake)
      : bytes_max_(bytes_max), wake_(std::move(wake)), held_(budget) {}

  std::shared_ptr<event_sink> sink(std::uint64_t run);
  // Pushes keeping_ended.
  written_fn keeper(std::uint64_t run);
  // Moves what waits to the end of `out`.
  void take(std::vector<run_event>& out);
  bool overflowed() const;
  // Later events are dropped and nobody is woken.
  void close();

private:
  friend class inbox_sink;
  void push(run_event event) noexcept;

  const std::size_t bytes_max_;
  mutable std::mutex mutex_;
  std::function<void()> wake_;
  std::vector<run_event> waiting_;
  std::size_t bytes_ = 0;
  byte_share held_; // bytes_
  bool woken_ = false;
  bool overflowed_ = false;
  bool closed_ = false;
};

// Joins neighbouring deltas of the same run and kind, so that a reader that fell behind gets fewer, larger ones.
void join_deltas(std::vector<run_event>& events);

} // namespace troupe
