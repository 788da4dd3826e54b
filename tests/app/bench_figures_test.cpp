#include <doctest/doctest.h>

#include "app/bench_figures.hpp"

using namespace troupe;

TEST_CASE("percentiles are linear between neighbours, as numpy's") {
  // numpy.percentile([4, 1, 3, 2], [0, 50, 95, 100]) = 1, 2.5, 3.85, 4
  const std::vector<double> values = {4, 1, 3, 2};
  CHECK(percentile(values, 0) == doctest::Approx(1));
  CHECK(percentile(values, 0.5) == doctest::Approx(2.5));
  CHECK(percentile(values, 0.95) == doctest::Approx(3.85));
  CHECK(percentile(values, 1) == doctest::Approx(4));
  CHECK(percentile({}, 0.5) == 0);
  CHECK(percentile({7}, 0.95) == 7);
}

TEST_CASE("failed requests are counted and stay out of the figures") {
  bench_sample good;
  good.first_token_s = 0.1;
  good.total_s = 0.5;
  good.gaps_s = {0.01, 0.03};
  good.prompt_tokens = 10;
  good.completion_tokens = 3;
  bench_sample bad;
  bad.error = "HTTP 503";
  bad.total_s = 100;
  const auto f = figures_of({good, bad}, 2.0);
  CHECK(f.requests == 2);
  CHECK(f.errors == 1);
  CHECK(f.total_p95_s == doctest::Approx(0.5));
  CHECK(f.first_p50_s == doctest::Approx(0.1));
  CHECK(f.gap_p50_s == doctest::Approx(0.02));
  CHECK(f.generated_tokens == 3);
  CHECK(f.prompt_tokens == 10);
}
