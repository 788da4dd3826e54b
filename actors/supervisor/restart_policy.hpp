// When a dead member of the company is started again, and when that is given up. Knows no actor and reads no clock.
//
// The first death within limits::restart_window is answered at once, each further one after a delay that doubles from
// limits::restart_delay_min to limits::restart_delay_max; the death after limits::restarts_max within the window escalates:
// the company counts as failing from then on and nothing is restarted any more.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "actors/actor_kind.hpp"
#include "base/clock.hpp"

namespace troupe {

class restart_policy {
public:
  struct decision {
    bool escalate = false;
    std::chrono::milliseconds delay{0}; // where not escalated
  };

  decision died(actor_kind kind, std::uint32_t index, steady_time now);
  // Empty while all is well; else which member died too often.
  const std::string& failing() const noexcept { return failing_; }

private:
  std::map<std::pair<actor_kind, std::uint32_t>, std::deque<steady_time>> deaths_; // within the window, oldest first
  std::string failing_;
};

} // namespace troupe
