#include "actors/supervisor/restart_policy.hpp"

#include <algorithm>

#include "config/limits.hpp"

namespace troupe {

restart_policy::decision restart_policy::died(actor_kind kind, std::uint32_t index, steady_time now) {
  auto& deaths = deaths_[{kind, index}];
  while (!deaths.empty() && now - deaths.front() > limits::restart_window)
    deaths.pop_front();
  deaths.push_back(now);
  if (!failing_.empty())
    return {true, {}};

  const auto count = static_cast<int>(deaths.size());
  if (count > limits::restarts_max) {
    failing_ = std::string(name_of(kind)) + " " + std::to_string(index) + " died " + std::to_string(count) + " times within " +
               std::to_string(limits::restart_window.count()) + " s";
    return {true, {}};
  }
  if (count == 1)
    return {false, {}};
  std::chrono::milliseconds delay = limits::restart_delay_min;
  for (int i = 2; i < count && delay < limits::restart_delay_max; ++i)
    delay *= 2;
  return {false, std::min<std::chrono::milliseconds>(delay, limits::restart_delay_max)};
}

} // namespace troupe
