// The bundled model, read from its folder, against the golden cases that its recipe wrote (models/recipe/export.py).
#include <doctest/doctest.h>

#include <filesystem>
#include <set>

#include "../support/golden_cases.hpp"
#include "../support/logit_source.hpp"
#include "model/model_file.hpp"
#include "model/tokenizer.hpp"

using namespace troupe;
using namespace troupe::tests;

namespace {

model_file open_tiny() {
  auto opened = open_model(std::filesystem::path(TROUPE_SOURCE_DIR) / "models/tiny");
  if (!opened)
    FAIL(opened.fault().message);
  return std::move(opened).value();
}

} // namespace

TEST_CASE("the bundled model has the shape that its README states and greedy defaults") {
  const auto file = open_tiny();
  const auto& shape = file.weights.shape;
  CHECK(shape.arch == architecture::qwen3);
  CHECK(shape.layers == 6);
  CHECK(shape.hidden == 256);
  CHECK(shape.heads == 4);
  CHECK(shape.kv_heads == 2);
  CHECK(shape.head_dim == 64);
  CHECK(shape.ffn == 768);
  CHECK(shape.vocabulary == 3072);
  CHECK(shape.tied_output);
  CHECK(shape.qk_norm);
  CHECK(file.sampling.temperature == 0.0f);
  CHECK(std::set<token_id>(file.end_tokens.begin(), file.end_tokens.end()) == std::set<token_id>{3063, 3065});
}

TEST_CASE("the bundled model's tokenizer gives the golden ids") {
  auto file = open_tiny();
  const auto built = tokenizer::build(std::move(file.tokenizer));
  REQUIRE(built);
  for (const auto& c : read_tiny_cases()) {
    CAPTURE(c.prompt);
    CHECK((*built)->encode_with_added_tokens(c.prompt) == c.ids);
  }
}

TEST_CASE("the reference forward pass continues all 20 golden conversations of the bundled model") {
  const auto file = open_tiny();
  reference_source source(file.weights);
  const auto cases = read_tiny_cases();
  REQUIRE(cases.size() == 20);
  for (const auto& c : cases)
    check_greedy(c, source, {.logits = 5e-4, .near_tie = 1e-3});
}
