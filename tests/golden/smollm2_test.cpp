// SmolLM2-135M-Instruct (Q4_1 GGUF) against an independent numpy forward pass on the same file (tests/golden/smollm2_make.py). The
// file is no part of the repository: the tests say that they were skipped where it is absent.
#include <doctest/doctest.h>

#include <algorithm>

#include "../support/golden_cases.hpp"
#include "../support/logit_source.hpp"
#include "model/model_file.hpp"
#include "model/tokenizer.hpp"

using namespace troupe;
using namespace troupe::tests;

namespace {

std::optional<model_file> open_smollm2() {
  const auto path = smollm2_file();
  if (!path) {
    MESSAGE("skipped: no SmolLM2 file; set TROUPE_SMOLLM2 to SmolLM2-135M-Instruct.Q4_1.gguf, or fetch it with `./dev run --model smollm2`");
    return std::nullopt;
  }
  auto opened = open_model(*path);
  if (!opened)
    FAIL(opened.fault().message);
  return std::move(opened).value();
}

} // namespace

TEST_CASE("SmolLM2's tokenizer gives the ids of PyPI's tokenizers") {
  auto file = open_smollm2();
  if (!file)
    return;
  const auto built = tokenizer::build(std::move(file->tokenizer));
  REQUIRE(built);
  for (const auto& c : read_smollm2_cases()) {
    CAPTURE(c.prompt);
    CHECK((*built)->encode_with_added_tokens(c.prompt) == c.ids);
  }
}

TEST_CASE("the reference forward pass starts all of SmolLM2's golden continuations, and goes on with the shortest prompt's") {
  const auto file = open_smollm2();
  if (!file)
    return;
  reference_source source(file->weights);
  auto cases = read_smollm2_cases();
  REQUIRE(cases.size() == 5);
  const auto shortest = std::min_element(cases.begin(), cases.end(), [](const auto& a, const auto& b) { return a.ids.size() < b.ids.size(); });
  for (auto& c : cases) { // the whole of them is left to the backends: the reference is slow
    CHECK(c.continuation.size() >= 48);
    if (&c != &*shortest)
      c.continuation.resize(2);
    check_greedy(c, source, {.logits = 2e-3, .near_tie = 2e-3});
  }
}
