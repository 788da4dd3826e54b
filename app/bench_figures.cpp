#include "app/bench_figures.hpp"

#include <algorithm>

namespace troupe {

double percentile(std::vector<double> values, double share) {
  if (values.empty())
    return 0;
  std::sort(values.begin(), values.end());
  const double place = share * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(place);
  const auto high = std::min(low + 1, values.size() - 1);
  return values[low] + (place - static_cast<double>(low)) * (values[high] - values[low]);
}

bench_figures figures_of(const std::vector<bench_sample>& samples, double wall_s) {
  std::vector<double> first, gaps, total;
  bench_figures f;
  for (const auto& sample : samples) {
    if (!sample.error.empty()) {
      ++f.errors;
      continue;
    }
    first.push_back(sample.first_token_s);
    total.push_back(sample.total_s);
    gaps.insert(gaps.end(), sample.gaps_s.begin(), sample.gaps_s.end());
    f.generated_tokens += sample.completion_tokens;
    f.prompt_tokens += sample.prompt_tokens;
  }
  f.requests = static_cast<int>(samples.size());
  f.wall_s = wall_s;
  f.first_p50_s = percentile(first, 0.5);
  f.first_p95_s = percentile(first, 0.95);
  f.gap_p50_s = percentile(gaps, 0.5);
  f.gap_p95_s = percentile(gaps, 0.95);
  f.total_p50_s = percentile(total, 0.5);
  f.total_p95_s = percentile(total, 0.95);
  return f;
}

} // namespace troupe
