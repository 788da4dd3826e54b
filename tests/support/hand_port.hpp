// A runtime that the test plays itself.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/edge.hpp"

namespace troupe::testing {

// Records what it is asked; the test pushes the events.
class hand_port final : public edge_port {
public:
  result<std::uint64_t> submit(generation_request request, std::shared_ptr<event_sink> sink) override {
    if (refusal)
      return *refusal;
    requests.push_back(std::move(request));
    sinks.push_back(std::move(sink));
    return static_cast<std::uint64_t>(requests.size());
  }
  result<std::vector<std::uint64_t>> submit_choices(generation_request request,
                                                    std::vector<std::shared_ptr<event_sink>> choices) override {
    std::vector<std::uint64_t> numbers;
    for (auto& sink : choices)
      if (auto number = submit(request, std::move(sink)))
        numbers.push_back(*number);
      else
        return number.fault();
    return numbers;
  }
  void cancel(std::uint64_t request) noexcept override { cancelled.push_back(request); }
  served_model model() const override { return {"org/model", context_tokens, "", 1'700'000'000}; }
  health_state health(std::string& why) const override {
    why = reason;
    return state;
  }
  std::string metrics_text() const override { return "fake 1"; }

  int context_tokens = 4096;
  std::optional<error> refusal;
  std::vector<generation_request> requests;
  std::vector<std::shared_ptr<event_sink>> sinks;
  std::vector<std::uint64_t> cancelled;
  health_state state = health_state::ready;
  std::string reason;
};

} // namespace troupe::testing
