#include "cpu/thread_team.hpp"

#include <algorithm>
#include <pthread.h>
#include <sched.h>

namespace troupe::cpu {

namespace {

// Thrown by sync() after another thread failed; carries nothing, the first exception is the one that counts.
struct team_failed {};

void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

std::vector<int> usable_core_list() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int c = 0; c < CPU_SETSIZE; ++c)
      if (CPU_ISSET(static_cast<std::size_t>(c), &set))
        cores.push_back(c);
  return cores;
}

} // namespace

int usable_cores() noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

thread_team::thread_team(int threads, bool pin) : size_(threads > 0 ? threads : usable_cores()) {
  const std::vector<int> cores = pin ? usable_core_list() : std::vector<int>{};
  for (int i = 1; i < size_; ++i) {
    workers_.emplace_back([this, i] { work(i); });
    if (!cores.empty()) {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(static_cast<std::size_t>(cores[static_cast<std::size_t>(i) % cores.size()]), &set);
      pthread_setaffinity_np(workers_.back().native_handle(), sizeof set, &set); // a refused wish is no fault
    }
  }
}

thread_team::~thread_team() {
  stopping_.store(true, std::memory_order_relaxed);
  job_number_.fetch_add(1, std::memory_order_release);
  job_number_.notify_all();
  for (auto& w : workers_)
    w.join();
}

void thread_team::run(const std::function<void(int)>& fn) {
  job_ = &fn;
  thrown_ = nullptr;
  failed_.store(false, std::memory_order_relaxed);
  arrived_.store(0, std::memory_order_relaxed);
  next_.store(0, std::memory_order_relaxed);
  finished_.store(0, std::memory_order_relaxed);
  job_number_.fetch_add(1, std::memory_order_release);
  job_number_.notify_all();
  call(0);
  const auto workers = static_cast<std::uint32_t>(size_ - 1);
  for (std::uint32_t done = finished_.load(std::memory_order_acquire); done != workers;
       done = finished_.load(std::memory_order_acquire))
    wait_while(finished_, done);
  if (thrown_)
    std::rethrow_exception(thrown_);
}

void thread_team::for_each(int units, const std::function<void(int)>& fn) {
  run([&](int) { share(units, fn); });
}

void thread_team::work(int index) {
  std::uint32_t seen = 0;
  for (;;) {
    wait_while(job_number_, seen);
    seen = job_number_.load(std::memory_order_acquire);
    if (stopping_.load(std::memory_order_relaxed))
      return;
    call(index);
    finished_.fetch_add(1, std::memory_order_release);
    finished_.notify_one();
  }
}

void thread_team::call(int index) noexcept {
  try {
    (*job_)(index);
  } catch (const team_failed&) {
  } catch (...) {
    {
      const std::lock_guard lock(thrown_mutex_);
      if (!thrown_)
        thrown_ = std::current_exception();
    }
    failed_.store(true, std::memory_order_release);
    phase_.fetch_add(1, std::memory_order_release);
    phase_.notify_all();
  }
}

std::uint32_t thread_team::enter() const {
  const std::uint32_t phase =
      phase_.load(std::memory_order_acquire); // before the check: a failure raises the phase after its flag
  if (failed_.load(std::memory_order_acquire))
    throw team_failed{};
  return phase;
}

void thread_team::leave_last(std::uint32_t phase) noexcept {
  next_.store(0, std::memory_order_relaxed);
  arrived_.store(0, std::memory_order_relaxed);
  phase_.store(phase + 1, std::memory_order_release);
  phase_.notify_all();
}

void thread_team::leave(std::uint32_t phase) const {
  wait_while(phase_, phase);
  if (failed_.load(std::memory_order_acquire))
    throw team_failed{};
}

void thread_team::wait_while(const std::atomic<std::uint32_t>& value, std::uint32_t old) noexcept {
  for (int i = 0; i < 64; ++i) {
    if (value.load(std::memory_order_acquire) != old)
      return;
    pause();
  }
  const auto end = std::chrono::steady_clock::now() + spin_for;
  do {
    for (int i = 0; i < 16; ++i) {
      if (value.load(std::memory_order_acquire) != old)
        return;
      pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  value.wait(old, std::memory_order_acquire);
}

} // namespace troupe::cpu
