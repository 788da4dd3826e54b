// Reuse to the token: tails, copies, kept states.
#include <doctest/doctest.h>

#include <numeric>

#include "base/check.hpp"
#include "memory/kv_shard_memory.hpp"

using namespace troupe;

namespace {

constexpr int P = limits::page_tokens;

std::vector<token_id> tokens_from(token_id first, int n) {
  std::vector<token_id> out(static_cast<std::size_t>(n));
  std::iota(out.begin(), out.end(), first);
  return out;
}

std::vector<token_id> then(std::vector<token_id> tokens, const std::vector<token_id>& more) {
  tokens.insert(tokens.end(), more.begin(), more.end());
  return tokens;
}

kv_shard_config shard(std::uint32_t pages, prefix_policy policy = {}) { return {.pages = pages, .prefix = policy}; }

prefix_policy with_states(std::uint32_t states = 4) { return {.prompt_states = states}; }

prompt_state_ptr some_state() { return std::make_shared<const prompt_state>(prompt_state{{std::byte{1}}}); }

class scene {
public:
  explicit scene(kv_shard_config config) : memory(config) {}

  std::variant<pages_reserved, pages_refused> ask(std::vector<token_id> tokens, int more = 0, bool want_state = true,
                                                  std::uint64_t salt = 7) {
    const int need = static_cast<int>(tokens.size()) + more;
    auto answer = memory.reserve({0, ++last, {last, 0}, std::make_shared<const std::vector<token_id>>(std::move(tokens)), salt,
                                  need, 0, want_state});
    memory.check_invariants();
    return answer;
  }
  pages_reserved reserve(std::vector<token_id> tokens, int more = 0, bool want_state = true, std::uint64_t salt = 7) {
    auto answer = ask(std::move(tokens), more, want_state, salt);
    REQUIRE(std::holds_alternative<pages_reserved>(answer));
    return std::get<pages_reserved>(answer);
  }
  void publish(lease_id lease, int position, std::vector<token_id> tokens, prompt_state_ptr state = nullptr, bool pin = false) {
    memory.publish({0, lease, {lease, 0}, position, std::move(tokens), true, pin, std::move(state)});
    memory.check_invariants();
  }
  void release(lease_id lease, int position = 0, std::vector<token_id> tokens = {}) {
    memory.release({0, lease, {lease, 0}, position, std::move(tokens)});
    memory.check_invariants();
  }
  // One request from its prompt to its end.
  pages_reserved pass(const std::vector<token_id>& tokens) {
    const auto got = reserve(tokens, 0, false);
    const auto whole = got.shared_tokens;
    release(got.lease, whole, {tokens.begin() + whole, tokens.end()});
    return got;
  }

  kv_shard_memory memory;
  lease_id last = 0;
};

} // namespace

TEST_CASE("the page in part full at a prompt's end is reused to the token, by copy into the first page of one's own") {
  scene s(shard(12));
  const auto first = s.pass(tokens_from(0, 2 * P + 5));
  const auto got = s.reserve(then(tokens_from(0, 2 * P + 3), tokens_from(900, 4)));
  CHECK(got.shared_tokens == 2 * P);
  CHECK(got.cached_tokens == 2 * P + 3);
  CHECK(got.copy_from == first.pages[2]);
  CHECK(got.pages[2] != first.pages[2]);
  CHECK(s.memory.stats().copied_tokens == 3);
  CHECK(s.memory.stats().hit_tokens == static_cast<std::uint64_t>(2 * P + 3));
}

TEST_CASE("of the children of a place the one that agrees longest is copied, full or in part full") {
  scene s(shard(20));
  const auto stem = tokens_from(0, P);
  s.pass(then(stem, tokens_from(100, 3)));
  const auto longest = s.pass(then(stem, then(tokens_from(100, 6), tokens_from(500, P - 6))));
  s.pass(then(stem, then(tokens_from(100, 4), tokens_from(700, 8))));
  const auto got = s.reserve(then(stem, then(tokens_from(100, 6), tokens_from(800, 5))));
  CHECK(got.cached_tokens == P + 6);
  CHECK(got.copy_from == longest.pages[1]);
}

TEST_CASE("a prompt that is known to its end computes its last token anew") {
  scene s(shard(12));
  for (const int n : {1, 5, P, P + 1, 2 * P}) {
    CAPTURE(n);
    const auto tokens = tokens_from(1000 * n, n);
    s.pass(tokens);
    const auto got = s.reserve(tokens);
    CHECK(got.cached_tokens == n - 1);
    CHECK(got.copy_from.has_value() == ((n - 1) % P != 0));
    s.release(got.lease);
  }
}

TEST_CASE("nothing that agrees with no token is copied, and no other tenant's") {
  scene s(shard(12));
  s.pass(tokens_from(0, 5));
  CHECK_FALSE(s.reserve(tokens_from(50, 5)).copy_from);
  CHECK_FALSE(s.reserve(tokens_from(0, 5), 0, false, 8).copy_from);
  CHECK(s.reserve(tokens_from(0, 5)).cached_tokens == 4);
}

TEST_CASE("what is copied from stays until the copy is made, and then may go") {
  scene s(shard(4));
  const auto old = s.pass(tokens_from(0, 5)); // one cached page
  const auto got = s.reserve(tokens_from(0, 6));
  REQUIRE(got.copy_from == old.pages[0]);
  CHECK(std::holds_alternative<pages_refused>(s.ask(tokens_from(500, 3 * P)))); // of 4 pages 2 are held
  s.publish(got.lease, 0, {});
  CHECK(std::holds_alternative<pages_reserved>(s.ask(tokens_from(500, 3 * P))));
  CHECK(s.memory.stats().evicted_pages == 1);
}

TEST_CASE("where the source of a copy takes the room that the request needs, the request goes without it") {
  scene s(shard(3));
  s.pass(tokens_from(0, P));
  const auto got = s.reserve(tokens_from(0, 5), 3 * P - 5);
  CHECK(got.cached_tokens == 0);
  CHECK_FALSE(got.copy_from);
  CHECK(got.pages.size() == 3);
}

TEST_CASE("nothing is published of a lease before its copy is made") {
  scene s(shard(8));
  s.pass(tokens_from(0, 5));
  const auto got = s.reserve(tokens_from(0, 6));
  REQUIRE(got.copy_from);
  CHECK_THROWS_AS(s.memory.publish({0, got.lease, {got.lease, 0}, 0, tokens_from(0, 6)}), check_failed);
}

TEST_CASE("a tail grows with its sequence, into a full page in the end, and others copy meanwhile") {
  scene s(shard(12));
  const auto writer = s.reserve(tokens_from(0, 5), 2 * P);
  s.publish(writer.lease, 0, tokens_from(0, 5));
  const auto early = s.reserve(tokens_from(0, P));
  CHECK(early.cached_tokens == 5);
  CHECK(early.copy_from == writer.pages[0]);
  s.publish(writer.lease, 0, tokens_from(0, 9));
  CHECK(s.reserve(tokens_from(0, P)).cached_tokens == 9);
  s.publish(writer.lease, 0, tokens_from(0, P + 2));
  const auto late = s.reserve(tokens_from(0, P + 4));
  CHECK(late.shared_tokens == P);
  CHECK(late.cached_tokens == P + 2);
  CHECK(late.pages[0] == writer.pages[0]);
  s.memory.release_all();
  s.memory.check_invariants();
  CHECK(s.memory.stats().cached == 2);
}

TEST_CASE("a tail that turns out to be another's page gives way to it, even while it is copied from") {
  scene s(shard(12));
  const auto one = s.reserve(tokens_from(0, 5), P);
  s.publish(one.lease, 0, tokens_from(0, 5));
  const auto reader = s.reserve(tokens_from(0, 8));
  REQUIRE(reader.copy_from == one.pages[0]);
  s.pass(tokens_from(0, P)); // another fills the page first
  s.publish(one.lease, 0, tokens_from(0, P));
  s.release(one.lease, P);
  CHECK(s.memory.stats().used > 0); // the reader still copies from it
  s.publish(reader.lease, 0, {});
  s.release(reader.lease);
  CHECK(s.memory.stats().used == 0);
  CHECK(s.memory.stats().cached == 1);
}

TEST_CASE("an idle tail whose tokens another page begins with is given up") {
  scene s(shard(12));
  s.pass(tokens_from(0, 5));
  s.pass(tokens_from(0, 9));
  CHECK(s.memory.stats().cached == 1);
  CHECK(s.memory.stats().covered_pages == 1);
  s.pass(tokens_from(0, 7)); // known already
  CHECK(s.memory.stats().cached == 1);
}

TEST_CASE("a kept state answers exactly its prompt, with every page of it") {
  scene s(shard(12, with_states()));
  for (const int n : {5, P, P + 3, 2 * P}) {
    CAPTURE(n);
    const auto tokens = tokens_from(1000 * n, n);
    const auto first = s.reserve(tokens, P);
    CHECK_FALSE(first.state);
    const auto kept = some_state();
    s.publish(first.lease, 0, tokens, kept);
    s.release(first.lease, n / P * P, then({tokens.begin() + n / P * P, tokens.end()}, tokens_from(7, 3)));
    const auto again = s.reserve(tokens, P);
    CHECK(again.state == kept);
    CHECK(again.cached_tokens == n);
    REQUIRE(again.copy_from);
    s.publish(again.lease, again.shared_tokens, {});
    s.release(again.lease);
    CHECK_FALSE(s.reserve(then(tokens, {1})).state);
    CHECK_FALSE(s.reserve({tokens.begin(), tokens.end() - 1}).state);
    CHECK_FALSE(s.reserve(tokens, 0, false).state); // not wanted
    CHECK_FALSE(s.reserve(tokens, 0, true, 8).state);
    s.memory.release_all();
  }
  CHECK(s.memory.stats().state_hits == 4);
}

TEST_CASE("a state goes with its page, and moves with its tokens to the page that covers them") {
  scene s(shard(3, with_states()));
  const auto tokens = tokens_from(0, 5);
  const auto first = s.reserve(tokens);
  s.publish(first.lease, 0, tokens, some_state());
  s.release(first.lease);
  s.pass(tokens_from(0, 9)); // covers the tail
  CHECK(s.memory.stats().covered_pages == 1);
  const auto again = s.reserve(tokens);
  CHECK(again.state);
  s.release(again.lease);
  s.pass(tokens_from(500, 3 * P)); // takes all pages
  CHECK(s.memory.stats().states == 0);
  CHECK_FALSE(s.reserve(tokens).state);
}

TEST_CASE("of states the least recently used goes at their bound") {
  scene s(shard(20, with_states(2)));
  for (const int n : {1, 2, 1, 3}) { // 1 again is a use
    const auto tokens = tokens_from(1000 * n, 5);
    const auto got = s.reserve(tokens);
    s.publish(got.lease, 0, got.state ? std::vector<token_id>{} : tokens, some_state());
    s.release(got.lease);
  }
  CHECK(s.memory.stats().states == 2);
  CHECK(s.reserve(tokens_from(1000, 5)).state);
  CHECK_FALSE(s.reserve(tokens_from(2000, 5)).state);
  CHECK(s.reserve(tokens_from(3000, 5)).state);
}

TEST_CASE("the bound on states holds whatever is asked for") {
  prompt_states none(0);
  none.put({}, tokens_from(0, 3), {1, 1}, some_state());
  CHECK(none.size() == 0);
  prompt_states most(limits::prompt_states_max + 5);
  for (std::uint32_t i = 0; i < limits::prompt_states_max + 5; ++i)
    most.put({}, tokens_from(static_cast<token_id>(i), 3), {i, 1}, some_state());
  CHECK(most.size() == limits::prompt_states_max);
}
