#include "actors/batcher/shard_affinity.hpp"

#include <doctest/doctest.h>

#include <numeric>

using namespace troupe;

namespace {

constexpr int P = limits::page_tokens;

std::vector<prefix_hash> beginnings(token_id first, int pages, std::uint64_t salt = 7) {
  std::vector<token_id> tokens(static_cast<std::size_t>(pages * P));
  std::iota(tokens.begin(), tokens.end(), first);
  return beginnings_of(salt, tokens);
}

using known = std::vector<std::uint32_t>;

} // namespace

TEST_CASE("a beginning has a name for each whole page, and another under another salt") {
  std::vector<token_id> tokens(static_cast<std::size_t>(2 * P + 5), 1);
  const auto names = beginnings_of(7, tokens);
  REQUIRE(names.size() == 2);
  CHECK_FALSE(names[0] == names[1]);
  CHECK_FALSE(names[0] == beginnings_of(8, tokens)[0]);
  CHECK(beginnings_of(7, {1, 2, 3}).empty());
}

TEST_CASE("each shard is known for as many pages as it was seen to hold, without gap") {
  shard_affinity a(3);
  const auto prompt = beginnings(0, 6);
  CHECK(a.known_pages(prompt) == known{0, 0, 0});
  a.learn(prompt, 0, 4 * P, 0);
  a.learn(prompt, 0, 2 * P + 3, 2); // the third page is not full
  CHECK(a.known_pages(prompt) == known{4, 0, 2});
  a.learn(prompt, 5 * P, 6 * P, 2); // behind a gap
  CHECK(a.known_pages(prompt) == known{4, 0, 2});
  a.learn(prompt, 4 * P, 100 * P, 0); // more than the prompt has
  CHECK(a.known_pages(prompt) == known{6, 0, 2});
  CHECK(a.known_pages(beginnings(1, 6)) == known{0, 0, 0});
}

TEST_CASE("a shard's own word corrects the guess, and its death ends it") {
  shard_affinity a(2);
  const auto prompt = beginnings(0, 6);
  a.learn(prompt, 0, 6 * P, 0);
  a.learn(prompt, 0, 6 * P, 1);
  a.correct(prompt, 2 * P, 1);
  CHECK(a.known_pages(prompt) == known{6, 2});
  a.forget(0);
  CHECK(a.known_pages(prompt) == known{0, 2});
}

TEST_CASE("the table is bounded; what was not used goes, deep pages before the first ones") {
  shard_affinity a(1);
  const auto used = beginnings(0, 10);
  const auto unused = beginnings(100'000, 10);
  a.learn(unused, 0, 10 * P, 0);
  a.learn(used, 0, 10 * P, 0);
  for (token_id i = 0; a.size() < limits::known_prefixes_max; ++i)
    a.learn(beginnings(1'000'000 + i, 1), 0, P, 0);
  a.known_pages(used);
  a.learn(beginnings(500'000'000, 5), 0, 5 * P, 0);
  CHECK(a.size() == limits::known_prefixes_max);
  CHECK(a.known_pages(used) == known{10});
  CHECK(a.known_pages(unused) == known{5});
}

TEST_CASE("a beginning moves on once staying has cost as many pages as it is worth") {
  shard_affinity a(2);
  CHECK_FALSE(a.spills(0, 20, 50));
  CHECK_FALSE(a.spills(0, 20, 50));
  CHECK_FALSE(a.spills(1, 20, 50));
  CHECK(a.spills(0, 20, 50));
  CHECK_FALSE(a.spills(0, 20, 50)); // from the start again
}
