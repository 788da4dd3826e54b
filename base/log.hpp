// Where library code reports what an operator should see. The library never prints; app/ decides where lines go.
// A sink is called from any thread and must not block for long. Prompts and answers are never logged by default.
#pragma once
#include <functional>
#include <string_view>

namespace troupe {

enum class log_level { debug, info, warning, error };
using log_sink = std::function<void(log_level, std::string_view)>;

inline void log_to(const log_sink& sink, log_level level, std::string_view line) {
  if (sink)
    sink(level, line);
}

} // namespace troupe
