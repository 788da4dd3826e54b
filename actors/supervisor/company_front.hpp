// What threads outside the actors see of the company: who takes requests, how it fares, which tickets are open.
//
// Owns: the latest company, the health, and the open tickets by number (weakly). Promises: no call waits for an actor.
// Limits: as many tickets as in_flight admits. Threads: any; one lock, held for a few loads and stores.
#pragma once
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/edge_bridge/request_ticket.hpp"

namespace troupe {

struct company;

class company_front {
public:
  void publish(std::shared_ptr<const company> peers);
  std::shared_ptr<const company> peers() const;

  // Health only worsens: starting, ready, draining, failing.
  void set_health(health_state state, std::string why);
  // Waits until the company has been started; false when the deadline came first.
  bool wait_started(std::chrono::steady_clock::time_point deadline) const;
  health_state health(std::string& why) const;

  void add(const ticket_ptr& ticket);
  ticket_ptr find(std::uint64_t number) const;
  void remove(std::uint64_t number);
  std::vector<ticket_ptr> open() const;

private:
  mutable std::mutex lock_;
  mutable std::condition_variable started_;
  std::shared_ptr<const company> peers_;
  health_state health_ = health_state::starting;
  std::string why_ = "the company is being started";
  std::unordered_map<std::uint64_t, std::weak_ptr<request_ticket>> tickets_;
};

} // namespace troupe
