#include "actors/supervisor/company_front.hpp"

namespace troupe {

void company_front::publish(std::shared_ptr<const company> peers) {
  const std::lock_guard guard(lock_);
  peers_.swap(peers);
}

std::shared_ptr<const company> company_front::peers() const {
  const std::lock_guard guard(lock_);
  return peers_;
}

void company_front::set_health(health_state state, std::string why) {
  const std::lock_guard guard(lock_);
  if (state < health_)
    return;
  health_ = state;
  why_ = std::move(why);
  started_.notify_all();
}

bool company_front::wait_started(std::chrono::steady_clock::time_point deadline) const {
  std::unique_lock guard(lock_);
  return started_.wait_until(guard, deadline, [this] { return health_ != health_state::starting; });
}

health_state company_front::health(std::string& why) const {
  const std::lock_guard guard(lock_);
  why = why_;
  return health_;
}

void company_front::add(const ticket_ptr& ticket) {
  const std::lock_guard guard(lock_);
  tickets_[ticket->number()] = ticket;
}

ticket_ptr company_front::find(std::uint64_t number) const {
  const std::lock_guard guard(lock_);
  const auto at = tickets_.find(number);
  return at == tickets_.end() ? nullptr : at->second.lock();
}

void company_front::remove(std::uint64_t number) {
  const std::lock_guard guard(lock_);
  tickets_.erase(number);
}

std::vector<ticket_ptr> company_front::open() const {
  const std::lock_guard guard(lock_);
  std::vector<ticket_ptr> out;
  for (const auto& [number, weak] : tickets_)
    if (auto ticket = weak.lock())
      out.push_back(std::move(ticket));
  return out;
}

} // namespace troupe
