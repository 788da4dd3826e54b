// What this machine can do at most, measured: the scale that kernel figures are read against.
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace troupe::bench {

struct timing {
  double median = 0, best = 0; // seconds
};

// Runs work(thread) on `threads` threads at once, `repeats` times after one that is not counted; wall time of each run.
timing time_threads(int threads, int repeats, const std::function<void(int)>& work);

struct limit {
  std::string name;
  double median = 0, best = 0; // GB/s or GFLOP/s
};

// Reading `bytes` of memory on huge pages with 1, 2 and 4 streams a thread, each with and without prefetch.
std::vector<limit> read_bandwidth(int threads, std::size_t bytes);

// Multiply-add peaks of the widest vectors that this build and this machine have.
std::vector<limit> arithmetic_peak(int threads);

} // namespace troupe::bench
