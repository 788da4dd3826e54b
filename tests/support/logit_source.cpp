#include "logit_source.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/check.hpp"

namespace troupe::tests {

backend_source::backend_source(backend& device) : device_(device), shape_(device.shape()) {
  page_table pages(shape_.pages);
  std::iota(pages.begin(), pages.end(), page_id{0});
  pages_ = std::make_shared<const page_table>(std::move(pages));
  sampling_params params;
  params.temperature = 0;
  params.logprobs = true;
  params.top_logprobs = shape_.vocabulary;
  sampling_ = std::make_shared<const sampling_params>(std::move(params));
}

void backend_source::restart() {
  ++sequence_;
  position_ = 0;
}

std::vector<float> backend_source::feed(std::span<const token_id> tokens) {
  TROUPE_CHECK(!tokens.empty());
  std::vector<float> logits(static_cast<std::size_t>(shape_.vocabulary), -std::numeric_limits<float>::infinity());
  while (!tokens.empty()) {
    const std::size_t count = std::min(tokens.size(), static_cast<std::size_t>(std::max(shape_.step_tokens_max, 1)));
    sequence_step sequence;
    sequence.id = {sequence_, 0};
    sequence.tokens.assign(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count));
    sequence.position = position_;
    sequence.pages = pages_;
    sequence.sample = count == tokens.size();
    if (sequence.sample)
      sequence.sampling = sampling_;
    step_plan plan;
    plan.number = ++steps_;
    plan.sequences.push_back(std::move(sequence));

    const auto done = device_.run(plan);
    TROUPE_CHECK(done.has_value());
    const auto& answer = done->sequences.at(0);
    TROUPE_CHECK(!answer.fault);
    if (count == tokens.size()) {
      TROUPE_CHECK(answer.token.has_value());
      for (const auto& t : answer.token->top)
        logits[static_cast<std::size_t>(t.token)] = t.logprob;
    }
    position_ += static_cast<std::int32_t>(count);
    tokens = tokens.subspan(count);
  }
  return logits;
}

} // namespace troupe::tests
