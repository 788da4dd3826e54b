// The golden cases of tests/golden through the CPU backend.
#include <doctest/doctest.h>

#include "cpu/cpu_backend.hpp"
#include "model/model_file.hpp"
#include "tests/support/golden_cases.hpp"
#include "tests/support/logit_source.hpp"

using namespace troupe;
using namespace troupe::tests;

namespace {

std::unique_ptr<backend> backend_for(const model_weights& weights) {
  cpu_options options;
  options.threads = 2;
  options.pages = 128;
  auto made = make_cpu_backend(weights, options);
  REQUIRE(made);
  return std::move(*made);
}

} // namespace

TEST_CASE("random models of every architecture and weight type give the logits that numpy computed") {
  for (const auto& c : read_random_cases()) {
    CAPTURE(c.name);
    const auto model = c.make();
    const auto device = backend_for(model.weights);
    backend_source source(*device);
    // Quantised: rounding activations to 8 bits a block of 32, in exact arithmetic otherwise, moves these models' logits by 1.0
    // to 3.8 in 100, since their layers amplify errors as no trained model's do; backend_test.cpp holds calmer ones to 2.
    const double error = relative_error(c, source);
    CHECK(error <= (info_of(c.type).block_weights == 1 ? 2e-3 : 4.5e-2));
  }
}

TEST_CASE("the bundled model's golden conversations hold") {
  const auto file = open_model(std::string(TROUPE_SOURCE_DIR) + "/models/tiny");
  REQUIRE(file);
  const auto device = backend_for(file->weights);
  backend_source source(*device);
  for (const auto& c : read_tiny_cases())
    check_greedy(c, source, {.logits = 2e-2, .near_tie = 5e-2});
}

TEST_CASE("SmolLM2 continues five prompts as its reference does") {
  const auto path = smollm2_file();
  if (!path) {
    MESSAGE("skipped: no SmolLM2 file; name one in TROUPE_SMOLLM2");
    return;
  }
  const auto file = open_model(*path);
  REQUIRE(file);
  const auto device = backend_for(file->weights);
  backend_source source(*device);
  for (const auto& c : read_smollm2_cases())
    // The goldens keep activations in floats. With activations of 8 bits, as llama.cpp has them too, a logit of this model
    // moves by up to 0.7 (llama.cpp 0.71 on these prompts, and it takes the other token at margins of 0.12, 0.16 and 0.29).
    check_greedy(c, source, {.logits = 0.8, .near_tie = 0.6});
}
