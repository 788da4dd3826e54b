// The one place of the backend: it outlives every compute stream that drives it, and lets one thread in at a time.
//
// Owns: the backend. Promises: run() answers every plan with a result that fits it or with one classified fault; nothing is
// thrown; a second thread inside is a defect and fails a check. The successor of a compute stream starts only after the death
// notice of its predecessor, which that one's own thread sends after it has left run().
// Threads: run() by the compute stream; read_page() and write_page() by the transfer stream, at the same time; the others by any.
#pragma once
#include <atomic>
#include <memory>
#include <optional>

#include "base/clock.hpp"
#include "model/backend.hpp"

namespace troupe {

class backend_slot {
public:
  backend_slot(std::unique_ptr<backend> owned, clock_fn clock);

  const backend_shape& shape() const noexcept { return shape_; }
  result<step_result> run(const step_plan& plan);
  // As the backend's; what it throws is a fault.
  result<void> read_page(page_id page, std::span<std::byte> to) const;
  result<void> write_page(page_id page, std::span<const std::byte> from);
  // How long the step that runs now has been running.
  std::optional<std::chrono::steady_clock::duration> running_for() const;

private:
  result<step_result> guarded_run(const step_plan& plan);

  std::unique_ptr<backend> backend_;
  const backend_shape shape_;
  const clock_fn clock_;
  std::atomic<std::int64_t> since_{0}; // ticks of the clock; 0: no step runs
};

} // namespace troupe
