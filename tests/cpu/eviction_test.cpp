// What eviction asks of the backend: how much tokens attend to positions, and keys and values moved together.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "cpu/isa.hpp"
#include "model/forward.hpp"
#include "tests/cpu/backend_scene.hpp"
#include "tests/support/isas_here.hpp"

using namespace troupe;
using namespace troupe::tests;
using troupe::testing::isas_here;

namespace {

constexpr std::uint64_t seed = 909;

random_model small_model(weight_type type = weight_type::f32) {
  random_model_sizes sizes;
  sizes.heads = 4;
  sizes.kv_heads = 2;
  return make_random_model(architecture::qwen3, type, seed, sizes);
}

sequence_step scored(sequence_step step, attention_score score) {
  step.scores = score;
  step.sample = false;
  step.sampling = nullptr;
  return step;
}

std::vector<token_id> part(const std::vector<token_id>& tokens, int begin, int end) {
  return {tokens.begin() + begin, tokens.begin() + end};
}

std::vector<float> scores_of(backend_scene& scene, const std::vector<token_id>& tokens, int begin, attention_score score) {
  const auto pages = backend_scene::pages(0, 45);
  for (int at = 0; at < begin; at += 300)
    scene.run({backend_scene::step(1, part(tokens, at, std::min(at + 300, begin)), at, pages)});
  auto done = scene.run({scored(backend_scene::step(1, part(tokens, begin, static_cast<int>(tokens.size())), begin, pages), score)});
  return std::move(done.sequences[0].scores);
}

} // namespace

TEST_CASE("scores are what the reference attends to, by the most and by the sum, and have the same bits on any number of threads") {
  CAPTURE(seed);
  const auto model = small_model();
  const auto& shape = model.weights.shape;
  const auto tokens = random_tokens(seed, 700, shape.vocabulary);
  const int begin = 600;
  reference_model reference(model.weights);
  reference.feed(part(tokens, 0, begin));
  const auto weights = reference.feed_weights(part(tokens, begin, 700));
  for (const auto score : {attention_score::peak, attention_score::mass}) {
    std::vector<float> expected(700);
    for (int layer = 0; layer + 1 < shape.layers; ++layer)
      for (const auto& head : weights[static_cast<std::size_t>(layer)]) {
        std::vector<float> joined(700);
        for (const auto& token : head)
          for (std::size_t i = 0; i < token.size(); ++i)
            joined[i] = score == attention_score::peak ? std::max(joined[i], token[i]) : joined[i] + token[i];
        for (std::size_t i = 0; i < joined.size(); ++i)
          expected[i] += joined[i] / static_cast<float>(shape.heads * (shape.layers - 1));
      }
    for (const auto target : isas_here()) {
      cpu_options options;
      options.isa = std::string(cpu::name_of(target));
      CAPTURE(options.isa);
      backend_scene scene(model.weights, 1, options);
      const auto got = scores_of(scene, tokens, begin, score);
      CHECK(relative_error(got, expected) < 2e-2); // keys are kept in halves
      backend_scene shared(model.weights, 3, options);
      CHECK(same_bits(scores_of(shared, tokens, begin, score), got));
    }
  }
}

TEST_CASE("asking for scores changes no logit") {
  const auto model = small_model(weight_type::q8_0);
  const auto tokens = random_tokens(seed, 300, model.weights.shape.vocabulary);
  const auto pages = backend_scene::pages(0, 20);
  backend_scene plain(model.weights, 2), asked(model.weights, 2);
  plain.run({backend_scene::step(1, tokens, 0, pages)});
  auto step = backend_scene::step(1, tokens, 0, pages);
  step.scores = attention_score::peak;
  CHECK(asked.run({step}).sequences[0].scores.size() == 300);
  CHECK(same_bits(asked.logits(1), plain.logits(1)));
}

TEST_CASE("a sequence goes on behind what was kept as the reference does, in its own pages and in others") {
  CAPTURE(seed);
  const auto model = small_model();
  const auto tokens = random_tokens(seed + 1, 260, model.weights.shape.vocabulary);
  std::vector<int> kept;
  for (int i = 0; i < 200; ++i)
    if (i < 4 || i >= 180 || i % 3 == 0)
      kept.push_back(i);
  reference_model reference(model.weights);
  reference.feed(part(tokens, 0, 200));
  reference.keep(kept);
  const auto expected = reference.feed(part(tokens, 200, 260));
  const auto from = backend_scene::pages(0, 20);
  std::vector<std::vector<float>> results;
  for (const auto& to : {from, backend_scene::pages(30, 20), backend_scene::pages(5, 20)}) {
    for (int threads : {1, 3}) {
      backend_scene scene(model.weights, threads);
      scene.run({backend_scene::step(1, part(tokens, 0, 200), 0, from)});
      step_plan plan;
      plan.number = 2;
      plan.compactions.push_back({{1, 0}, from, to, {kept.begin(), kept.end()}});
      plan.sequences.push_back(backend_scene::step(1, part(tokens, 200, 260), static_cast<int>(kept.size()), to));
      plan.sequences[0].evicted = 200 - static_cast<int>(kept.size());
      REQUIRE(scene.device().run(plan));
      results.push_back(scene.logits(1));
      CHECK(relative_error(results.back(), expected) < 2e-2);
      CHECK(same_bits(results.back(), results.front()));
    }
  }
}

TEST_CASE("of all types, what is kept in its place is not changed, and what moves is near what it was") {
  const auto model = small_model();
  const auto tokens = random_tokens(seed + 2, 100, model.weights.shape.vocabulary);
  const auto pages = backend_scene::pages(0, 10);
  std::vector<std::int32_t> all(99), without(98);
  for (int i = 0; i < 99; ++i)
    all[static_cast<std::size_t>(i)] = i;
  for (int i = 0; i < 98; ++i)
    without[static_cast<std::size_t>(i)] = i < 50 ? i : i + 1;
  for (const kv_type type : kv_types_all) {
    cpu_options options;
    options.kv = {type, type};
    const auto after = [&](std::vector<std::int32_t> kept) {
      backend_scene scene(model.weights, 1, options);
      scene.run({backend_scene::step(1, part(tokens, 0, 99), 0, pages)});
      step_plan plan;
      const int position = static_cast<int>(kept.empty() ? 99 : kept.size());
      if (!kept.empty())
        plan.compactions.push_back({{1, 0}, pages, pages, std::move(kept)});
      plan.sequences.push_back(backend_scene::step(1, {tokens.back()}, position, pages));
      REQUIRE(scene.device().run(plan));
      return scene.logits(1);
    };
    const auto untouched = after({});
    CHECK(same_bits(after(all), untouched));
    CHECK(relative_error(after(without), untouched) < 0.5); // one of a hundred tokens is gone
  }
}

TEST_CASE("a compaction that breaks its contract fails the step and changes nothing") {
  const auto model = small_model();
  const auto tokens = random_tokens(seed + 3, 40, model.weights.shape.vocabulary);
  const auto pages = backend_scene::pages(0, 3);
  backend_scene scene(model.weights, 1);
  const auto outside = std::make_shared<page_table>(page_table{0, 1, 100'000});
  for (const kv_compaction& bad : {kv_compaction{{1, 0}, pages, pages, {}}, kv_compaction{{1, 0}, pages, pages, {3, 2}},
                                   kv_compaction{{1, 0}, pages, pages, {48}}, kv_compaction{{1, 0}, pages, pages, {-1}},
                                   kv_compaction{{1, 0}, nullptr, pages, {1}}, kv_compaction{{1, 0}, pages, outside, {1}},
                                   kv_compaction{{1, 0}, backend_scene::pages(0, 3), backend_scene::pages(5, 0), {1}}}) {
    step_plan plan;
    plan.compactions.push_back(bad);
    plan.sequences.push_back(backend_scene::step(1, tokens, 0, pages));
    const auto done = scene.device().run(plan);
    REQUIRE_FALSE(done);
    CHECK(done.fault().code == errc::invalid_argument);
  }
}
