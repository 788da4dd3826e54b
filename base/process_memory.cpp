#include "base/process_memory.hpp"

#include <cstdio>

namespace troupe {

process_memory memory_of_process() {
  process_memory out;
  std::FILE* status = std::fopen("/proc/self/status", "re");
  if (!status)
    return out;
  char line[128];
  while (std::fgets(line, sizeof line, status)) {
    unsigned long long kib = 0;
    if (std::sscanf(line, "VmRSS: %llu kB", &kib) == 1)
      out.resident_bytes = kib << 10;
    else if (std::sscanf(line, "VmHWM: %llu kB", &kib) == 1)
      out.peak_bytes = kib << 10;
  }
  std::fclose(status);
  return out;
}

} // namespace troupe
