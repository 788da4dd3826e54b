// The edge's way into the company: the gate before the actors.
//
// Owns: the numbers of requests. Promises: a request is refused before anything is tokenised, or its sink gets exactly one end;
// no call waits. Limits: in_flight's limit; queue_full beyond. Threads: any.
#pragma once
#include <atomic>
#include <memory>

#include "actors/compute_stream/backend_slot.hpp"
#include "actors/supervisor/company_front.hpp"
#include "actors/support/runtime_context.hpp"

namespace troupe {

struct port_parts {
  context_ptr context;
  std::shared_ptr<company_front> front;
  std::shared_ptr<in_flight> slots;
  std::shared_ptr<backend_slot> device;
};

class actor_port final : public edge_port {
public:
  explicit actor_port(port_parts parts) : parts_(std::move(parts)) {}

  result<std::uint64_t> submit(generation_request request, std::shared_ptr<event_sink> sink) override;
  result<std::vector<std::uint64_t>> submit_choices(generation_request request,
                                                    std::vector<std::shared_ptr<event_sink>> sinks) override;
  void cancel(std::uint64_t request) noexcept override;
  served_model model() const override { return parts_.context->model; }
  health_state health(std::string& why) const override;
  std::string metrics_text() const override { return parts_.context->metrics->render(parts_.slots->count()); }

private:
  result<void> open_for_work() const;
  result<std::shared_ptr<const company>> admit(const generation_request& request, int places);
  ticket_ptr make_ticket(std::shared_ptr<event_sink> sink);

  const port_parts parts_;
  std::atomic<std::uint64_t> last_number_{0};
};

} // namespace troupe
