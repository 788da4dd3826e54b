// The figures of `troupe bench`, apart from the load that gives them.
#pragma once
#include <string>
#include <vector>

namespace troupe {

struct bench_sample {
  double first_token_s = 0;
  double total_s = 0;
  std::vector<double> gaps_s; // between chunks with text
  int prompt_tokens = 0;
  int completion_tokens = 0;
  std::string error; // empty: the request went through
};

// Of the requests that went through; errors are counted apart.
struct bench_figures {
  int requests = 0;
  int errors = 0;
  double wall_s = 0;
  double first_p50_s = 0, first_p95_s = 0;
  double gap_p50_s = 0, gap_p95_s = 0;
  double total_p50_s = 0, total_p95_s = 0;
  long long generated_tokens = 0;
  long long prompt_tokens = 0;
};

// Linear between neighbours, as numpy's default. 0 for no values. share in [0, 1].
double percentile(std::vector<double> values, double share);

bench_figures figures_of(const std::vector<bench_sample>& samples, double wall_s);

} // namespace troupe
