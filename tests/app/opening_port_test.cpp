#include <doctest/doctest.h>

#include "app/opening_port.hpp"

using namespace troupe;

namespace {

class ready_port final : public edge_port {
public:
  result<std::uint64_t> submit(generation_request, std::shared_ptr<event_sink>) override { return ++submitted; }
  result<std::vector<std::uint64_t>> submit_choices(generation_request, std::vector<std::shared_ptr<event_sink>> sinks) override {
    submitted += sinks.size();
    return std::vector<std::uint64_t>(sinks.size(), submitted);
  }
  void cancel(std::uint64_t request) noexcept override { cancelled = request; }
  served_model model() const override { return {"m", 10, "", 0}; }
  health_state health(std::string&) const override { return health_state::ready; }
  std::string metrics_text() const override { return "x 1\n"; }
  std::uint64_t submitted = 0;
  std::uint64_t cancelled = 0;
};

} // namespace

TEST_CASE("before the model is there, health says starting and work is refused as unavailable") {
  opening_port port;
  std::string why;
  CHECK(port.health(why) == health_state::starting);
  CHECK(why == "the model is loading");
  const auto sent = port.submit({}, nullptr);
  REQUIRE_FALSE(sent);
  CHECK(sent.fault().code == errc::unavailable);
  CHECK_FALSE(port.submit_choices({}, {nullptr, nullptr}));
  CHECK(port.model().name.empty());
  CHECK(port.metrics_text().empty());
  port.cancel(3);
}

TEST_CASE("once opened everything reaches the runtime, and nothing after closing") {
  ready_port real;
  opening_port port;
  port.open(real);
  std::string why;
  CHECK(port.health(why) == health_state::ready);
  CHECK(*port.submit({}, nullptr) == 1);
  CHECK(port.submit_choices({}, {nullptr, nullptr})->size() == 2);
  port.cancel(1);
  CHECK(real.cancelled == 1);
  CHECK(port.model().name == "m");
  CHECK(port.metrics_text() == "x 1\n");
  port.close();
  CHECK_FALSE(port.submit({}, nullptr));
  CHECK_FALSE(port.submit_choices({}, {nullptr, nullptr}));
  CHECK(real.submitted == 3);
}
