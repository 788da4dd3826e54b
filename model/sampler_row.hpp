// One row of logits, read once: the parts of sampling that touch every logit.
//
// Owns the maximum of each block of the row; borrows the logits, which must not change meanwhile. From the maxima it finds the
// best logits without reading, let alone sorting, the rest again. Promises: ties go to the lowest id. Any thread.
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.hpp"

namespace troupe {

struct candidate {
  float logit;
  token_id token;
  float weight = 0; // in proportion to the probability after temperature
};

// The one order of tokens: better logit first, then lower id.
inline bool better(const candidate& a, const candidate& b) noexcept {
  return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
}

// e^x for x <= 0, exactly 0 below -87, within 2e-7 of the true value. The clamp works on the bits, where the compiler cannot turn
// it into a branch, so that loops over this become vector code.
inline float exp_negative(float x) noexcept {
  constexpr std::int32_t deepest = std::bit_cast<std::int32_t>(87.0f);
  const std::int32_t depth = std::bit_cast<std::int32_t>(x) & 0x7fff'ffff;
  const float bounded = -std::bit_cast<float>(std::min(depth, deepest));
  const float magic = 12582912.0f; // 1.5 * 2^23: adding it rounds to an integer
  const float n = (bounded * 1.44269504f + magic) - magic;
  const float r = (bounded - n * 0.693145752f) - n * 1.42860677e-6f; // ln 2 in two parts
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const std::int32_t all_ones_if_kept = (depth - deepest - 1) >> 31;
  return p * std::bit_cast<float>((static_cast<std::int32_t>(n) + 127) << 23 & all_ones_if_kept);
}

class logit_row {
public:
  // A block is small enough that looking through the few blocks that hold the best logits costs nothing, and large enough that
  // there are few blocks.
  static constexpr std::size_t block_size = 128;

  explicit logit_row(std::span<const float> logits);

  // Whether a token can be chosen: some logit is above -inf, none is NaN or +inf. All that follows needs it.
  bool usable() const noexcept;
  float highest() const noexcept { return maxima_[best_block_]; }
  token_id best() const noexcept;
  // All of at least `threshold` and above -inf, ids ascending. Blocks without any are not read.
  std::vector<candidate> at_least(float threshold) const;
  // The k best (k > 0; fewer where fewer are above -inf), ids ascending.
  std::vector<candidate> best(std::size_t k) const;

  // e^((logit - highest) * scale)
  float weight(float logit, float scale) const noexcept { return exp_negative((logit - highest()) * scale); }

  // Blocks of the row: their number, ids [begin_of, end_of), and the sum of their weights.
  std::size_t blocks() const noexcept { return maxima_.size(); }
  std::size_t begin_of(std::size_t block) const noexcept { return block * block_size; }
  std::size_t end_of(std::size_t block) const noexcept { return std::min((block + 1) * block_size, logits_.size()); }
  double mass_of(std::size_t block, float scale) const noexcept;
  double mass(float scale) const noexcept;
  float logit(std::size_t id) const noexcept { return logits_[id]; }

private:
  float scan_block(std::size_t block) noexcept;

  std::span<const float> logits_;
  std::vector<float> maxima_;
  std::size_t best_block_ = 0; // the first with the highest maximum
  bool bad_ = false;           // a NaN or +inf was seen
};

} // namespace troupe
