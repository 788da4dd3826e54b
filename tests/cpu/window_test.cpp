// Sequences that are longer than their window: against the reference, and on a ring of pages against pages never used twice.
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

constexpr std::uint64_t seed = 4711;
constexpr attention_window window{2, 5};

random_model_sizes small_sizes() {
  random_model_sizes s;
  s.heads = 4;
  s.kv_heads = 2;
  return s;
}

// The table of a sequence of `tokens` on a ring: two sink pages, then `ring` pages in turn, all from `first` on.
std::shared_ptr<page_table> ring_table(page_id first, int ring, int tokens) {
  auto table = std::make_shared<page_table>();
  for (int page = 0; page * limits::page_tokens < tokens; ++page)
    table->push_back(first + static_cast<page_id>(page < window.sink_pages ? page : window.sink_pages + (page - window.sink_pages) % ring));
  return table;
}

sequence_step windowed(sequence_step step, attention_window w = window) {
  step.window = w;
  return step;
}

// Feeds tokens in cuts of at most `cut`; the logits after the last.
std::vector<float> feed(backend_scene& scene, const std::vector<token_id>& tokens, const std::shared_ptr<const page_table>& pages, int cut,
                        attention_window w = window) {
  const int length = static_cast<int>(tokens.size());
  for (int at = 0; at < length; at += cut) {
    const int end = std::min(at + cut, length);
    scene.run({windowed(backend_scene::step(1, {tokens.begin() + at, tokens.begin() + end}, at, pages), w)});
  }
  return scene.logits(1);
}

} // namespace

TEST_CASE("a window hides whole pages between the sinks and the last ones, and brings the sinks nearer by as much") {
  const attention_window none;
  CHECK(none.hidden_end(1'000'000) == 0);
  CHECK(none.position_for_sinks(1'000'000) == 1'000'000);
  CHECK(window.sinks() == 32);
  CHECK(window.hidden_end(7 * 16 - 1) == 0); // two sink pages and five more: all is seen
  CHECK(window.position_for_sinks(7 * 16 - 1) == 7 * 16 - 1);
  CHECK(window.hidden_end(7 * 16) == 48);
  CHECK(window.position_for_sinks(7 * 16) == 6 * 16);
  CHECK(window.hidden_end(100 * 16 + 5) == 96 * 16);
  CHECK(window.position_for_sinks(100 * 16 + 5) == 6 * 16 + 5); // never farther than the window is long
  CHECK(attention_window{0, 3}.hidden_end(50) == 16);
}

TEST_CASE("a sequence beyond its window agrees with the reference, and with no window at all while it is within") {
  CAPTURE(seed);
  const auto model = make_random_model(architecture::qwen3, weight_type::f32, seed, small_sizes());
  const auto tokens = random_tokens(seed, 700, model.weights.shape.vocabulary);
  for (int length : {1, 7 * 16, 7 * 16 + 1, 300, 700}) {
    CAPTURE(length);
    const std::vector<token_id> part(tokens.begin(), tokens.begin() + length);
    backend_scene scene(model.weights, 1);
    const auto got = feed(scene, part, backend_scene::pages(0, 50), 37);
    reference_model reference(model.weights, window);
    CHECK(relative_error(got, reference.feed(part)) < 2e-2);
    backend_scene whole(model.weights, 1);
    const auto all = feed(whole, part, backend_scene::pages(0, 50), 37, {});
    CHECK(same_bits(got, all) == (length <= 7 * 16));
  }
}

TEST_CASE("on a ring that wrapped many times every bit is as on pages of their own, for every cut, thread count and instruction set") {
  CAPTURE(seed);
  const auto model = make_random_model(architecture::qwen3, weight_type::q8_0, seed, small_sizes());
  const int length = 1200; // positions over three chunks of attention
  const auto tokens = random_tokens(seed + 1, length, model.weights.shape.vocabulary);
  for (const auto target : isas_here()) {
    cpu_options options;
    options.isa = std::string(cpu::name_of(target));
    CAPTURE(options.isa);
    backend_scene plain(model.weights, 1, options);
    const auto expected = feed(plain, tokens, backend_scene::pages(0, 75), 256);
    for (int threads : {1, 3}) {
      // A cut of n tokens reaches into n / 16 + 1 pages more than the first of them sees.
      for (const auto& [cut, ring] : {std::pair{1, 5}, {16, 6}, {23, 7}, {64, 9}, {150, 15}}) {
        if (cut == 1 && (threads > 1 || target != isas_here().back()))
          continue;
        CAPTURE(cut);
        backend_scene scene(model.weights, threads, options);
        CHECK(same_bits(feed(scene, tokens, ring_table(3, ring, length), cut), expected));
      }
    }
  }
}

TEST_CASE("a window of less than no pages is refused for its sequence alone") {
  const auto model = make_random_model(architecture::qwen3, weight_type::f32, seed, small_sizes());
  backend_scene scene(model.weights, 1);
  const auto done = scene.run({windowed(backend_scene::step(1, {1, 2, 3}, 0, backend_scene::pages(0, 1)), {-1, 2}),
                                   backend_scene::step(2, {1, 2, 3}, 0, backend_scene::pages(4, 1))});
  REQUIRE(done.sequences[0].fault);
  CHECK(done.sequences[0].fault->code == errc::invalid_argument);
  CHECK(done.sequences[1].token);
}
