#include "model/sampler_row.hpp"

#include <array>
#include <functional>
#include <limits>

namespace troupe {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

// Lanes fill vector registers of any width, and are too many for the compiler to unroll their loops before it vectorises them.
constexpr std::size_t lanes = 32;
static_assert(logit_row::block_size % lanes == 0);

} // namespace

logit_row::logit_row(std::span<const float> logits) : logits_(logits), maxima_((logits.size() + block_size - 1) / block_size) {
  for (std::size_t b = 0; b < maxima_.size(); ++b) {
    maxima_[b] = scan_block(b);
    if (maxima_[b] > maxima_[best_block_])
      best_block_ = b;
  }
}

float logit_row::scan_block(std::size_t block) noexcept {
  const std::size_t end = end_of(block);
  std::array<float, lanes> top;
  top.fill(-infinity);
  std::array<std::int32_t, lanes> bad{};
  std::size_t i = begin_of(block);
  for (; i + lanes <= end; i += lanes)
    for (std::size_t j = 0; j < lanes; ++j) {
      const float x = logits_[i + j];
      top[j] = x > top[j] ? x : top[j];
      bad[j] |= x < infinity ? 0 : 1; // NaN too
    }
  for (; i < end; ++i) {
    top[0] = logits_[i] > top[0] ? logits_[i] : top[0];
    bad[0] |= logits_[i] < infinity ? 0 : 1;
  }
  for (std::size_t width = lanes / 2; width > 0; width /= 2)
    for (std::size_t j = 0; j < width; ++j) {
      top[j] = top[j + width] > top[j] ? top[j + width] : top[j];
      bad[j] |= bad[j + width];
    }
  bad_ = bad_ || bad[0] != 0;
  return top[0];
}

bool logit_row::usable() const noexcept { return !bad_ && !maxima_.empty() && highest() > -infinity; }

token_id logit_row::best() const noexcept {
  std::size_t i = begin_of(best_block_);
  while (logits_[i] != highest())
    ++i;
  return static_cast<token_id>(i);
}

std::vector<candidate> logit_row::at_least(float threshold) const {
  std::vector<candidate> out;
  for (std::size_t b = 0; b < maxima_.size(); ++b) {
    if (maxima_[b] < threshold)
      continue;
    for (std::size_t i = begin_of(b); i < end_of(b); ++i)
      if (logits_[i] >= threshold && logits_[i] > -infinity)
        out.push_back({logits_[i], static_cast<token_id>(i)});
  }
  return out;
}

std::vector<candidate> logit_row::best(std::size_t k) const {
  // The k-th best block maximum is a lower bound of the k-th best logit, so that about k blocks are read again.
  float threshold = -infinity;
  if (k < maxima_.size()) {
    auto maxima = maxima_;
    const auto bound = maxima.begin() + static_cast<std::ptrdiff_t>(k - 1);
    std::nth_element(maxima.begin(), bound, maxima.end(), std::greater<>());
    threshold = *bound;
  }
  auto found = at_least(threshold);
  if (found.size() > k) {
    auto ordered = found;
    const auto last = ordered.begin() + static_cast<std::ptrdiff_t>(k - 1);
    std::nth_element(ordered.begin(), last, ordered.end(), better);
    std::erase_if(found, [cut = *last](const candidate& c) { return better(cut, c); });
  }
  return found;
}

double logit_row::mass_of(std::size_t block, float scale) const noexcept {
  const float highest_logit = highest();
  const float* x = logits_.data() + begin_of(block);
  const std::size_t n = end_of(block) - begin_of(block);
  std::array<float, block_size> weights{};
  for (std::size_t i = 0; i < n; ++i)
    weights[i] = exp_negative((x[i] - highest_logit) * scale);
  for (std::size_t width = block_size / 2; width >= lanes; width /= 2)
    for (std::size_t i = 0; i < width; ++i)
      weights[i] += weights[i + width];
  double total = 0;
  for (std::size_t i = 0; i < lanes; ++i)
    total += static_cast<double>(weights[i]);
  return total;
}

double logit_row::mass(float scale) const noexcept {
  double total = 0;
  for (std::size_t b = 0; b < blocks(); ++b)
    total += mass_of(b, scale);
  return total;
}

} // namespace troupe
