// The edge's port while the model still loads: healthy is "starting", work is refused with unavailable. Once opened it passes
// everything on. Any thread may call it; open and close are for the main thread.
#pragma once
#include <atomic>

#include "io/edge.hpp"

namespace troupe {

class opening_port final : public edge_port {
public:
  // `real` outlives the time until close() and the calls that are under way by then.
  void open(edge_port& real) noexcept { real_.store(&real); }
  void close() noexcept { real_.store(nullptr); }

  result<std::uint64_t> submit(generation_request request, std::shared_ptr<event_sink> sink) override {
    if (auto* real = real_.load())
      return real->submit(std::move(request), std::move(sink));
    return fail(errc::unavailable, "the model is still loading");
  }
  result<std::vector<std::uint64_t>> submit_choices(generation_request request,
                                                    std::vector<std::shared_ptr<event_sink>> sinks) override {
    if (auto* real = real_.load())
      return real->submit_choices(std::move(request), std::move(sinks));
    return fail(errc::unavailable, "the model is still loading");
  }
  void cancel(std::uint64_t request) noexcept override {
    if (auto* real = real_.load())
      real->cancel(request);
  }
  served_model model() const override {
    if (const auto* real = real_.load())
      return real->model();
    return {};
  }
  health_state health(std::string& why) const override {
    if (const auto* real = real_.load())
      return real->health(why);
    why = "the model is loading";
    return health_state::starting;
  }
  std::string metrics_text() const override {
    const auto* real = real_.load();
    return real ? real->metrics_text() : std::string();
  }

private:
  std::atomic<edge_port*> real_{nullptr};
};

} // namespace troupe
