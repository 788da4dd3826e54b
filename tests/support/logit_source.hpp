// Something that yields logits for a token sequence: the reference forward pass, or a backend behind its own interface. The golden
// cases run on any of them.
//
// A source feeds one sequence. Logits may be off by one constant a row (a backend answers log-probabilities), so callers compare
// differences.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/backend.hpp"
#include "model/forward.hpp"

namespace troupe::tests {

class logit_source {
public:
  virtual ~logit_source() = default;
  virtual void restart() = 0;
  // Feeds tokens after everything fed since restart(); returns the logits after the last one. [vocabulary]
  virtual std::vector<float> feed(std::span<const token_id> tokens) = 0;
};

class reference_source final : public logit_source {
public:
  explicit reference_source(const model_weights& weights) : model_(weights) {}
  void restart() override { model_.reset(); }
  std::vector<float> feed(std::span<const token_id> tokens) override { return model_.feed(tokens); }

private:
  reference_model model_;
};

// Asks the backend for every id's log-probability, greedily, with pages 0, 1, 2, ... in order. Steps carry at most
// shape().step_tokens_max tokens. Rows of ids beyond the backend's usable vocabulary are -inf.
class backend_source final : public logit_source {
public:
  explicit backend_source(backend& device);
  void restart() override;
  std::vector<float> feed(std::span<const token_id> tokens) override;

private:
  backend& device_;
  backend_shape shape_;
  std::shared_ptr<const page_table> pages_;
  std::shared_ptr<const sampling_params> sampling_;
  std::uint64_t steps_ = 0;
  std::uint64_t sequence_ = 1;
  std::int32_t position_ = 0;
};

} // namespace troupe::tests
