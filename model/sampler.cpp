#include "model/sampler.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/check.hpp"
#include "base/random.hpp"
#include "model/sampler_row.hpp"

namespace troupe {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float greedy_below = 1e-5f; // logits closer than this differ by rounding alone
constexpr float temperature_max = 1e6f;

void add_bias(std::span<float> logits, const sampling_params& params) {
  for (const auto& [token, bias] : params.logit_bias)
    if (token >= 0 && static_cast<std::size_t>(token) < logits.size())
      logits[static_cast<std::size_t>(token)] += bias;
}

void penalise(std::span<float> logits, const sampling_params& params, std::span<const token_count> counts) {
  for (const auto& c : counts) {
    if (c.token < 0 || static_cast<std::size_t>(c.token) >= logits.size())
      continue;
    float& logit = logits[static_cast<std::size_t>(c.token)];
    if (c.in_prompt + c.in_answer > 0)
      logit = logit > 0 ? logit / params.repetition_penalty : logit * params.repetition_penalty;
    if (c.in_answer > 0)
      logit -= params.presence_penalty + params.frequency_penalty * static_cast<float>(c.in_answer);
  }
}

// Returns the sum of the weights.
double weigh(std::vector<candidate>& all, const logit_row& row, float scale) {
  double total = 0;
  for (auto& c : all) {
    c.weight = row.weight(c.logit, scale);
    total += static_cast<double>(c.weight);
  }
  return total;
}

// Keeps the fewest best ones whose weights reach `needed`, in the order in which they stood. Halves are set apart, not sorted,
// until few remain.
void keep_mass(std::vector<candidate>& all, double needed) {
  auto ordered = all;
  auto begin = ordered.begin();
  auto end = ordered.end();
  while (end - begin > 64) {
    const auto middle = begin + (end - begin) / 2;
    std::nth_element(begin, middle, end, better);
    double upper = 0;
    for (auto c = begin; c != middle; ++c)
      upper += static_cast<double>(c->weight);
    if (upper >= needed)
      end = middle;
    else {
      needed -= upper;
      begin = middle;
    }
  }
  std::sort(begin, end, better);
  while (end - begin > 1 && needed > static_cast<double>(begin->weight)) {
    needed -= static_cast<double>(begin->weight);
    ++begin;
  }
  std::erase_if(all, [cut = *begin](const candidate& c) { return better(cut, c); });
}

// Top-p over the whole row: a threshold that leaves little of the mass below it is tried before all tokens are.
std::vector<candidate> nucleus(const logit_row& row, float scale, double share) {
  const double total = row.mass(scale);
  std::vector<candidate> found;
  for (const float depth : {6.0f, infinity}) {
    found = row.at_least(row.highest() - depth / scale);
    if (weigh(found, row, scale) >= share * total)
      break;
  }
  keep_mass(found, share * total);
  return found;
}

token_id draw_from(const std::vector<candidate>& kept, double uniform) {
  double total = 0;
  for (const auto& c : kept)
    total += static_cast<double>(c.weight);
  double left = uniform * total;
  token_id last = -1; // where rounding leaves a rest
  for (const auto& c : kept) {
    if (left < static_cast<double>(c.weight))
      return c.token;
    left -= static_cast<double>(c.weight);
    last = c.weight > 0 ? c.token : last;
  }
  return last;
}

// From every token, with no truncation: first the block, then the token in it.
token_id draw_from_all(const logit_row& row, float scale, double uniform) {
  std::vector<double> masses(row.blocks());
  double total = 0;
  for (std::size_t b = 0; b < masses.size(); ++b)
    total += masses[b] = row.mass_of(b, scale);
  double left = uniform * total;
  std::size_t b = 0;
  while (b + 1 < masses.size() && left >= masses[b])
    left -= masses[b++];
  while (masses[b] == 0) // only where rounding leaves a rest after the last block with a mass
    --b;
  token_id last = -1;
  for (std::size_t i = row.begin_of(b); i < row.end_of(b); ++i) {
    const double weight = static_cast<double>(row.weight(row.logit(i), scale));
    if (left < weight)
      return static_cast<token_id>(i);
    left -= weight;
    last = weight > 0 ? static_cast<token_id>(i) : last;
  }
  return last;
}

token_id choose(const logit_row& row, const sampling_params& params, std::uint64_t position) {
  if (params.temperature < greedy_below)
    return row.best();
  const float scale = 1.0f / std::min(params.temperature, temperature_max);
  const double uniform = uniform_at(params.seed, position);
  const bool limited = params.top_k > 0;
  const bool floored = params.min_p > 0;
  if (!limited && !floored)
    return params.top_p < 1 ? draw_from(nucleus(row, scale, static_cast<double>(params.top_p)), uniform)
                            : draw_from_all(row, scale, uniform);

  const float threshold = floored ? row.highest() + std::log(std::min(params.min_p, 1.0f)) / scale : -infinity;
  auto kept = limited ? row.best(static_cast<std::size_t>(params.top_k)) : row.at_least(threshold);
  if (limited && floored)
    std::erase_if(kept, [&](const candidate& c) { return c.logit < threshold; });
  const double total = weigh(kept, row, scale);
  if (params.top_p < 1)
    keep_mass(kept, static_cast<double>(params.top_p) * total);
  return draw_from(kept, uniform);
}

} // namespace

sampled_token sample(std::span<float> logits, int usable, const sampling_params& params, std::span<const token_count> counts,
                     std::uint64_t position) {
  TROUPE_CHECK(usable >= 0 && static_cast<std::size_t>(usable) <= logits.size());
  const auto row_logits = logits.first(static_cast<std::size_t>(usable));
  add_bias(row_logits, params);
  if (params.penalises())
    penalise(row_logits, params, counts);

  sampled_token out;
  const logit_row row(row_logits);
  if (!row.usable())
    return out;
  out.token = choose(row, params, position);

  if (params.logprobs) {
    const double log_total = static_cast<double>(row.highest()) + std::log(row.mass(1.0f));
    const auto logprob = [&](token_id token) {
      return static_cast<float>(static_cast<double>(row_logits[static_cast<std::size_t>(token)]) - log_total);
    };
    out.logprob = logprob(out.token);
    if (params.top_logprobs > 0) {
      auto top = row.best(static_cast<std::size_t>(params.top_logprobs));
      std::sort(top.begin(), top.end(), better);
      for (const auto& c : top)
        out.top.push_back({c.token, logprob(c.token)});
    }
  }
  return out;
}

} // namespace troupe
