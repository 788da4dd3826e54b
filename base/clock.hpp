// Time is passed in, so that tests and the simulator own it.
#pragma once
#include <chrono>
#include <functional>

namespace troupe {

using steady_time = std::chrono::steady_clock::time_point;
using clock_fn = std::function<steady_time()>;

inline clock_fn real_clock() {
  return [] { return std::chrono::steady_clock::now(); };
}

} // namespace troupe
