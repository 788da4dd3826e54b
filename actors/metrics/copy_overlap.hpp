// Owns how long pages have been copied between the tiers, and how much of that time was hidden: a step ran meanwhile, or nobody
// waited for a page. What is left is time in which the only thing that went on was a copy that somebody waited for.
// Promises: intervals are cut at every change, so the sums are exact. Limits: three counts and three sums. Any thread; one
// lock, held for a few additions.
#pragma once
#include <array>
#include <chrono>
#include <mutex>

#include "base/clock.hpp"

namespace troupe {

class copy_overlap {
public:
  enum class part {
    copying,  // a page is being moved
    stepping, // the device runs a step
    waiting,  // a request waits for a page
  };
  struct totals {
    std::chrono::nanoseconds copying{0};
    std::chrono::nanoseconds beside_steps{0}; // of that, while a step ran
    std::chrono::nanoseconds hidden{0};       // of that, while a step ran or nobody waited
    double hidden_share() const noexcept {
      return copying.count() == 0 ? 1.0 : static_cast<double>(hidden.count()) / static_cast<double>(copying.count());
    }
  };

  // `by` more of it go on from now on.
  void change(steady_time now, part what, int by);
  // One more while it lives.
  class during {
  public:
    during(copy_overlap& overlap, const clock_fn& clock, part what) : overlap_(overlap), clock_(clock), what_(what) {
      overlap_.change(clock_(), what_, 1);
    }
    ~during() { overlap_.change(clock_(), what_, -1); }
    during(const during&) = delete;
    during& operator=(const during&) = delete;

  private:
    copy_overlap& overlap_;
    const clock_fn& clock_;
    part what_;
  };
  totals read() const; // up to the last change

private:
  mutable std::mutex lock_;
  std::array<int, 3> going_on_{};
  steady_time since_{};
  totals totals_;
};

} // namespace troupe
