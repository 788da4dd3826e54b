// What the kernel says of this process's memory. Any thread; a few microseconds a call.
#pragma once
#include <cstdint>

namespace troupe {

struct process_memory {
  std::uint64_t resident_bytes = 0; // now: VmRSS
  std::uint64_t peak_bytes = 0;     // since the start: VmHWM
};

// Zeros where /proc can't be read.
process_memory memory_of_process();

} // namespace troupe
