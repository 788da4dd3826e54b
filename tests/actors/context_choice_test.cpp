// What becomes of turns that may outgrow their context.
#include <doctest/doctest.h>

#include <numeric>

#include "actors/session/context_choice.hpp"

using namespace troupe;

namespace {

std::vector<token_id> numbered(int count) {
  std::vector<token_id> out(static_cast<std::size_t>(count));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

} // namespace

TEST_CASE("without a window a turn has the room that its prompt leaves, and none is an error") {
  auto prompt = numbered(60);
  CHECK(choose_context(overflow_policy::refuse, 64, 16, {}, prompt)->max_new_tokens == 4);
  CHECK(choose_context(overflow_policy::refuse, 64, 16, 3, prompt)->max_new_tokens == 3);
  CHECK(choose_context(overflow_policy::refuse, 60, 16, 0, prompt)->max_new_tokens == 0);
  const auto full = choose_context(overflow_policy::refuse, 60, 16, {}, prompt);
  REQUIRE_FALSE(full);
  CHECK(full.fault().code == errc::context_full);
}

TEST_CASE("a turn that fits has no window; one that may outgrow its context has, with pages to go on in") {
  auto prompt = numbered(100);
  CHECK_FALSE(choose_context(overflow_policy::window, 1024, 16, 924, prompt)->window.bounded());
  const auto fit = choose_context(overflow_policy::window, 1024, 16, 925, prompt);
  REQUIRE(fit);
  CHECK(fit->window == attention_window{1, 55});
  CHECK(fit->ring_pages == 63); // with the sink all 64 pages of the context
  CHECK(fit->max_new_tokens == 925);
  CHECK(fit->dropped_tokens == 0);
  CHECK(prompt.size() == 100);
  CHECK(choose_context(overflow_policy::window, 1024, 16, {}, prompt)->max_new_tokens == 1024);
}

TEST_CASE("a long prompt keeps its sinks and its end, and its cut stands still while it grows by a quarter of the window") {
  const int shown = 56 * 16, quarter = 13 * 16;
  int cuts = 0, last = 0;
  for (int length = shown - 3; length < 6000; ++length) {
    auto prompt = numbered(length);
    const auto fit = choose_context(overflow_policy::window, 1024, 16, {}, prompt);
    REQUIRE(fit);
    const auto kept = static_cast<int>(prompt.size());
    REQUIRE(kept + fit->dropped_tokens == length);
    if (length <= shown) {
      REQUIRE(kept == length);
      continue;
    }
    REQUIRE(kept <= shown - quarter);
    REQUIRE(kept > shown - 2 * quarter);
    REQUIRE(fit->dropped_tokens % quarter == 0);
    REQUIRE(prompt[15] == 15);
    REQUIRE(prompt[16] == 16 + fit->dropped_tokens);
    REQUIRE(prompt.back() == length - 1);
    cuts += fit->dropped_tokens != last;
    last = fit->dropped_tokens;
  }
  CHECK(cuts == (6000 - shown) / quarter + 1);
}

TEST_CASE("a turn that is to be compressed gets a budget that leaves room to be read again in") {
  auto prompt = numbered(3000);
  const auto fit = choose_context(overflow_policy::compress, 1030, 16, 50, prompt);
  REQUIRE(fit);
  CHECK(fit->budget_tokens == 1024 - 128);
  CHECK(fit->max_new_tokens == 50);
  CHECK(prompt.size() == 3000);
  CHECK_FALSE(fit->window.bounded());
  prompt.resize(100);
  CHECK(choose_context(overflow_policy::compress, 1030, 16, 50, prompt)->budget_tokens == 0); // it fits
  CHECK(choose_context(overflow_policy::compress, 191, 16, {}, prompt).fault().code == errc::invalid_argument);
}

TEST_CASE("a context of a few pages is too small for a window, and says what is enough") {
  auto prompt = numbered(100);
  const auto small = choose_context(overflow_policy::window, 90, 16, {}, prompt);
  REQUIRE_FALSE(small);
  CHECK(small.fault().code == errc::invalid_argument);
  CHECK(small.fault().message == "a context of 90 tokens is too small for a window; 96 are the least");
  CHECK(choose_context(overflow_policy::window, 96, 16, {}, prompt));
  CHECK(choose_context(overflow_policy::window, 96, 0, {}, prompt)->window.sink_pages == 0);
}
