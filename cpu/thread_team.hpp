// A fixed team of threads that computes one step together and sleeps between steps.
//
// Owns size() - 1 workers; thread 0 is whoever calls run(), the leader. Promises: run() returns when every thread has returned
// from the function; between two phases the threads meet in sync(), where the last to arrive runs a serial piece alone while
// the others wait. A waiting thread spins for at most `spin_for`, then sleeps in the kernel: an idle team uses no CPU, and a
// team whose cores are taken by others does not burn what is left. One run at a time.
//
// If one thread throws, the others leave at their next sync() and run() rethrows the first exception on the leader.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace troupe::cpu {

// The cores that this process may run on, at least 1.
int usable_cores() noexcept;

class thread_team {
public:
  // threads 0: usable_cores(). `pin` ties worker i to the i-th usable core; the leader's thread is left as it is.
  explicit thread_team(int threads = 0, bool pin = false);
  ~thread_team();
  thread_team(const thread_team&) = delete;
  thread_team& operator=(const thread_team&) = delete;

  int size() const noexcept { return size_; }

  // Calls fn(i) once on each thread, i in [0, size()).
  void run(const std::function<void(int)>& fn);

  // Inside run(): waits for all threads; the last one to arrive runs `serial` before any goes on.
  template <class Serial>
  void sync(Serial&& serial) {
    const std::uint32_t phase = enter();
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
      serial();
      leave_last(phase);
    } else {
      leave(phase);
    }
  }
  void sync() {
    sync([] {});
  }

  // Inside run(): fn(unit) for every unit in [0, units), each on whichever thread is free. Every thread calls it with the same
  // count, and a sync() stands between two calls.
  template <class F>
  void share(int units, F&& fn) {
    for (int u = next_.fetch_add(1, std::memory_order_relaxed); u < units; u = next_.fetch_add(1, std::memory_order_relaxed))
      fn(u);
  }

  // run() and share() in one: for work of a single phase.
  void for_each(int units, const std::function<void(int)>& fn);

private:
  static constexpr auto spin_for = std::chrono::microseconds(40); // longer than a phase's imbalance, shorter than a time slice

  void work(int index);
  void call(int index) noexcept;
  std::uint32_t enter() const;
  void leave_last(std::uint32_t phase) noexcept;
  void leave(std::uint32_t phase) const;
  static void wait_while(const std::atomic<std::uint32_t>& value, std::uint32_t old) noexcept;

  int size_ = 1;
  const std::function<void(int)>* job_ = nullptr;
  std::exception_ptr thrown_;
  std::mutex thrown_mutex_;
  alignas(64) std::atomic<std::uint32_t> job_number_{0};
  alignas(64) std::atomic<std::uint32_t> finished_{0}; // workers done with the present job
  alignas(64) std::atomic<std::uint32_t> phase_{0};
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<int> next_{0};
  alignas(64) std::atomic<bool> failed_{false};
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> workers_;
};

} // namespace troupe::cpu
