// A CPU backend over a random model, and the logits that it chose from: what the backend's tests share.
#pragma once
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "cpu/cpu_backend.hpp"
#include "tests/support/random_model.hpp"

namespace troupe::tests {

// The length of the difference as a share of the expected one's.
inline double relative_error(const std::vector<float>& got, const std::vector<float>& expected) {
  REQUIRE(got.size() == expected.size());
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    difference += std::pow(static_cast<double>(got[i]) - expected[i], 2);
    size += std::pow(static_cast<double>(expected[i]), 2);
  }
  return std::sqrt(difference / size);
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Keeps the logits of every sampled row, by request number.
class backend_scene {
public:
  backend_scene(const model_weights& weights, int threads, cpu_options options = {}) {
    options.threads = threads;
    options.pages = options.pages == 1024 ? 96 : options.pages;
    options.on_logits = [this](const request_id& id, std::span<const float> row) {
      logits_[id.number].emplace_back(row.begin(), row.end());
    };
    device_ = std::move(*make_cpu_backend(weights, options));
  }

  backend& device() { return *device_; }

  static std::shared_ptr<const page_table> pages(page_id first, int count) {
    auto p = std::make_shared<page_table>();
    for (int i = 0; i < count; ++i)
      p->push_back(first + static_cast<page_id>(i));
    return p;
  }

  static sequence_step step(std::uint64_t number, std::vector<token_id> tokens, int position,
                            std::shared_ptr<const page_table> pages) {
    sequence_step s;
    s.id = {number, 0};
    s.tokens = std::move(tokens);
    s.position = position;
    s.pages = std::move(pages);
    s.sample = true;
    sampling_params greedy;
    greedy.temperature = 0;
    s.sampling = std::make_shared<const sampling_params>(greedy);
    return s;
  }

  step_result run(std::vector<sequence_step> sequences, std::vector<page_copy> copies = {}) {
    step_plan plan;
    plan.number = ++steps_;
    plan.sequences = std::move(sequences);
    plan.copies = std::move(copies);
    return std::move(*device_->run(plan));
  }

  // The last logits of a request.
  const std::vector<float>& logits(std::uint64_t number) { return logits_.at(number).back(); }
  // Those after every step of a request.
  const std::vector<std::vector<float>>& all_logits(std::uint64_t number) { return logits_.at(number); }
  std::size_t rows_seen() const {
    std::size_t n = 0;
    for (const auto& [id, rows] : logits_)
      n += rows.size();
    return n;
  }

private:
  std::map<std::uint64_t, std::vector<std::vector<float>>> logits_;
  std::unique_ptr<backend> device_;
  std::uint64_t steps_ = 0;
};

} // namespace troupe::tests
