// Going on from a kept state: the same bits as computing the prompt.
#include <doctest/doctest.h>

#include "tests/cpu/backend_scene.hpp"

using namespace troupe;
using namespace troupe::tests;

namespace {

constexpr std::uint64_t seed = 5;

sequence_step resuming(std::uint64_t number, int position, std::shared_ptr<const page_table> pages, prompt_state_ptr state) {
  auto s = backend_scene::step(number, {}, position, std::move(pages));
  s.state = std::move(state);
  return s;
}

} // namespace

TEST_CASE("a token chosen from a kept state has the logits of the pass that kept it, alone and in a batch") {
  for (const auto type : {weight_type::f32, weight_type::q8_0, weight_type::q4_k}) {
    CAPTURE(info_of(type).name);
    const auto model = make_random_model(architecture::qwen3, type, seed);
    const auto tokens = random_tokens(seed, 40, model.weights.shape.vocabulary);
    backend_scene scene(model.weights, 2);
    const auto pages = backend_scene::pages(0, 4);
    auto first = backend_scene::step(1, tokens, 0, pages);
    first.keep_state = true;
    const auto kept = scene.run({first});
    REQUIRE(kept.sequences[0].state);
    const auto alone = scene.run({resuming(2, 40, pages, kept.sequences[0].state)});
    CHECK(same_bits(scene.logits(1), scene.logits(2)));
    CHECK(alone.sequences[0].token->token == kept.sequences[0].token->token);
    CHECK_FALSE(alone.sequences[0].state);
    // Beside a prefill, a decode and another that resumes.
    auto decode = backend_scene::step(4, {tokens[3]}, 40, pages);
    scene.run({resuming(3, 40, pages, kept.sequences[0].state), backend_scene::step(5, tokens, 0, backend_scene::pages(10, 4)),
               decode, resuming(6, 40, pages, kept.sequences[0].state)});
    CHECK(same_bits(scene.logits(1), scene.logits(3)));
    CHECK(same_bits(scene.logits(1), scene.logits(5)));
    CHECK(same_bits(scene.logits(1), scene.logits(6)));
    scene.run({backend_scene::step(7, {tokens[3]}, 40, pages)});
    CHECK(same_bits(scene.logits(4), scene.logits(7)));
  }
}

TEST_CASE("the sampler's randomness after a kept state is that of the position, as after the pass") {
  const auto model = make_random_model(architecture::qwen3, weight_type::f32, seed);
  const auto tokens = random_tokens(seed, 20, model.weights.shape.vocabulary);
  backend_scene scene(model.weights, 1);
  const auto pages = backend_scene::pages(0, 2);
  for (std::uint64_t draw = 1; draw <= 20; ++draw) {
    sampling_params sampling;
    sampling.seed = draw;
    auto first = backend_scene::step(1, tokens, 0, pages);
    first.keep_state = true;
    first.sampling = std::make_shared<const sampling_params>(sampling);
    const auto kept = scene.run({first});
    auto again = resuming(2, 20, pages, kept.sequences[0].state);
    again.sampling = first.sampling;
    CHECK(scene.run({again}).sequences[0].token->token == kept.sequences[0].token->token);
  }
}

TEST_CASE("a step of no tokens needs a state of this model, a place and a choice to make") {
  const auto model = make_random_model(architecture::qwen3, weight_type::f32, seed);
  const auto tokens = random_tokens(seed, 20, model.weights.shape.vocabulary);
  backend_scene scene(model.weights, 1);
  const auto pages = backend_scene::pages(0, 2);
  auto first = backend_scene::step(1, tokens, 0, pages);
  first.keep_state = true;
  const auto state = scene.run({first}).sequences[0].state;
  const auto fault = [&](const sequence_step& s) {
    const auto done = scene.run({s});
    return done.sequences[0].fault ? done.sequences[0].fault->code : errc::ok;
  };
  CHECK(fault(resuming(2, 20, pages, nullptr)) == errc::invalid_argument);
  CHECK(fault(resuming(2, 20, pages, std::make_shared<const prompt_state>())) == errc::invalid_argument);
  CHECK(fault(resuming(2, 0, pages, state)) == errc::invalid_argument);
  CHECK(fault(resuming(2, 33, pages, state)) == errc::invalid_argument);
  auto mute = resuming(2, 20, pages, state);
  mute.sample = false;
  CHECK(fault(mute) == errc::invalid_argument);
  CHECK(fault(resuming(2, 20, pages, state)) == errc::ok);
}

TEST_CASE("a sequence behind a page copied in part, even while its owner writes on, has the bits of one computed alone") {
  const auto model = make_random_model(architecture::qwen3, weight_type::q8_0, seed);
  auto tokens = random_tokens(seed, 40, model.weights.shape.vocabulary);
  backend_scene scene(model.weights, 2);
  const auto owner = backend_scene::pages(0, 3);
  scene.run({backend_scene::step(1, {tokens.begin(), tokens.begin() + 21}, 0, owner)});
  // Shares page 0 and the first 5 tokens of page 1; the owner's next tokens go behind them in the same step.
  auto other = tokens;
  for (std::size_t i = 21; i < other.size(); ++i)
    other[i] = tokens[60 - i];
  const auto pages = std::make_shared<const page_table>(page_table{0, 10, 11});
  scene.run({backend_scene::step(1, {tokens.begin() + 21, tokens.end()}, 21, owner),
             backend_scene::step(2, {other.begin() + 21, other.end()}, 21, pages)},
            {{1, 10}});
  scene.run({backend_scene::step(3, tokens, 0, backend_scene::pages(20, 3)),
             backend_scene::step(4, other, 0, backend_scene::pages(30, 3))});
  CHECK(same_bits(scene.logits(1), scene.logits(3)));
  CHECK(same_bits(scene.logits(2), scene.logits(4)));
}
