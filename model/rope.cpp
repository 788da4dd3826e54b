#include "model/rope.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

#include "base/check.hpp"

namespace troupe {
namespace {

constexpr double two_pi = 2 * std::numbers::pi;

// YaRN (Peng et al. 2023, section 3.2): pairs that turn more than beta_fast times within the original context keep their
// frequency, those that turn less than beta_slow times are interpolated, with a linear ramp over the pair index between.
void scale_yarn(std::vector<double>& frequencies, const rope_settings& rope, int head_dim) {
  // The (fractional) pair that turns `turns` times within the original context.
  const auto pair_turning = [&](double turns) {
    return head_dim * std::log(rope.original_context / (turns * two_pi)) / (2 * std::log(static_cast<double>(rope.base)));
  };
  const double low = std::max(std::floor(pair_turning(rope.beta_fast)), 0.0);
  const double high = std::min(std::ceil(pair_turning(rope.beta_slow)), head_dim - 1.0);
  const double width = std::max(high - low, 0.001); // a step where the two meet
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / width, 0.0, 1.0);
    frequencies[i] = frequencies[i] / rope.factor * ramp + frequencies[i] * (1 - ramp);
  }
}

// Llama 3.1: wavelengths beyond original / low_frequency_factor are stretched by the factor, those within
// original / high_frequency_factor are kept, those between are blended by how often they fit into the original context.
void scale_llama3(std::vector<double>& frequencies, const rope_settings& rope) {
  const double low = rope.low_frequency_factor;
  const double high = rope.high_frequency_factor;
  for (double& f : frequencies) {
    const double turns = rope.original_context * f / two_pi;
    if (turns < low)
      f /= rope.factor;
    else if (turns <= high && high > low) {
      const double kept = (turns - low) / (high - low);
      f = (1 - kept) * f / rope.factor + kept * f;
    }
  }
}

} // namespace

rope_table make_rope_table(const rope_settings& rope, int head_dim) {
  TROUPE_CHECK(head_dim > 0 && head_dim % 2 == 0);
  const auto pairs = static_cast<std::size_t>(head_dim) / 2;
  TROUPE_CHECK(rope.divisors.empty() || rope.divisors.size() == pairs);

  std::vector<double> frequencies(pairs);
  for (std::size_t i = 0; i < pairs; ++i) {
    frequencies[i] = std::pow(static_cast<double>(rope.base), -2.0 * static_cast<double>(i) / head_dim);
    if (!rope.divisors.empty())
      frequencies[i] /= rope.divisors[i];
  }

  rope_table table;
  switch (rope.scaling) {
    case rope_scaling::none: break;
    case rope_scaling::linear:
      for (double& f : frequencies)
        f /= rope.factor;
      break;
    case rope_scaling::yarn:
      scale_yarn(frequencies, rope, head_dim);
      if (rope.attention_factor > 0)
        table.magnitude = rope.attention_factor;
      else if (rope.factor > 1)
        table.magnitude = 0.1f * std::log(rope.factor) + 1.0f;
      break;
    case rope_scaling::llama3:
      if (rope.divisors.empty()) // a file's divisors are this blend, already worked out
        scale_llama3(frequencies, rope);
      break;
  }

  table.frequencies.resize(pairs);
  std::transform(frequencies.begin(), frequencies.end(), table.frequencies.begin(), [](double f) { return static_cast<float>(f); });
  return table;
}

} // namespace troupe
