#include "memory/kv_shard_memory.hpp"

#include <doctest/doctest.h>

#include <numeric>

#include "base/check.hpp"

using namespace troupe;

namespace {

constexpr int P = limits::page_tokens;

std::shared_ptr<const std::vector<token_id>> tokens_from(token_id first, int n) {
  std::vector<token_id> out(static_cast<std::size_t>(n));
  std::iota(out.begin(), out.end(), first);
  return std::make_shared<const std::vector<token_id>>(std::move(out));
}

std::vector<token_id> part(const std::shared_ptr<const std::vector<token_id>>& tokens, int from, int to) {
  return {tokens->begin() + from, tokens->begin() + to};
}

reserve_pages ask(lease_id lease, std::shared_ptr<const std::vector<token_id>> tokens, int more = 0) {
  const int need = static_cast<int>(tokens->size()) + more;
  return {0, lease, {lease, 0}, std::move(tokens), 7, need, 0};
}

pages_reserved granted(kv_shard_memory& memory, const reserve_pages& r) {
  auto answer = memory.reserve(r);
  memory.check_invariants();
  REQUIRE(std::holds_alternative<pages_reserved>(answer));
  return std::get<pages_reserved>(answer);
}

pages_refused refused(kv_shard_memory& memory, const reserve_pages& r) {
  auto answer = memory.reserve(r);
  memory.check_invariants();
  REQUIRE(std::holds_alternative<pages_refused>(answer));
  return std::get<pages_refused>(answer);
}

} // namespace

TEST_CASE("a reservation covers what it needs, in one run of pages of the shard's own range") {
  kv_shard_memory memory({.index = 3, .first = 40, .pages = 10});
  const auto got = granted(memory, ask(1, tokens_from(0, 2 * P + 1), P));
  CHECK(got.shard == 3);
  CHECK(got.pages == std::vector<page_id>{40, 41, 42, 43});
  CHECK(got.cached_tokens == 0);
  CHECK(got.report.pages == 10);
  CHECK(got.report.free == 6);
  CHECK(got.report.serial == 1);
}

TEST_CASE("a reservation that does not fit is refused and leaves everything as it was") {
  kv_shard_memory memory({.pages = 4});
  granted(memory, ask(1, tokens_from(0, P)));
  const auto no = refused(memory, ask(2, tokens_from(0, 4 * P)));
  CHECK(no.fault.code == errc::no_memory);
  CHECK(no.report.available() == 3);
  CHECK(memory.stats().leases == 1);
  CHECK(memory.stats().refusals == 1);
}

TEST_CASE("a reservation leaves the headroom that was asked for") {
  kv_shard_memory memory({.pages = 4});
  auto r = ask(1, tokens_from(0, 2 * P));
  r.headroom_pages = 3;
  refused(memory, r);
  r.headroom_pages = 2;
  granted(memory, r);
}

TEST_CASE("a lease grows by half, never past what it can come to need, and takes less where less is there") {
  kv_shard_memory memory({.pages = 20});
  granted(memory, ask(1, tokens_from(0, 8 * P)));
  auto answer = memory.grow({0, 1, {1, 0}, 8 * P + 1, 100 * P});
  CHECK(std::get<pages_grown>(answer).added == std::vector<page_id>{8, 9, 10, 11});
  answer = memory.grow({0, 1, {1, 0}, 12 * P + 1, 14 * P});
  CHECK(std::get<pages_grown>(answer).added.size() == 2);
  answer = memory.grow({0, 1, {1, 0}, 14 * P + 1, 100 * P}); // half would be 7, there are 6
  CHECK(std::get<pages_grown>(answer).added.size() == 6);
  answer = memory.grow({0, 1, {1, 0}, 20 * P, 100 * P}); // it has that
  CHECK(std::get<pages_grown>(answer).added.empty());
  answer = memory.grow({0, 1, {1, 0}, 20 * P + 1, 100 * P});
  CHECK(std::get<pages_refused>(answer).fault.code == errc::no_memory);
  memory.check_invariants();
}

TEST_CASE("an unknown lease's growth is refused, its publication ignored, its release answered") {
  kv_shard_memory memory({.pages = 4});
  CHECK(std::get<pages_refused>(memory.grow({0, 9, {9, 0}, P, P})).fault.code == errc::not_found);
  memory.publish({0, 9, {9, 0}, 0, part(tokens_from(0, P), 0, P)});
  CHECK(memory.release({0, 9, {9, 0}, 0, {}}).lease == 9);
  CHECK(memory.stats().free == 4);
  memory.check_invariants();
}

TEST_CASE("pages are shared from their publication on, and not before") {
  kv_shard_memory memory({.pages = 12});
  const auto tokens = tokens_from(0, 3 * P);
  const auto first = granted(memory, ask(1, tokens));
  CHECK(granted(memory, ask(2, tokens)).cached_tokens == 0);
  memory.publish({0, 1, {1, 0}, 0, part(tokens, 0, 2 * P)});
  memory.check_invariants();
  const auto third = granted(memory, ask(3, tokens));
  CHECK(third.cached_tokens == 2 * P);
  CHECK(third.pages[0] == first.pages[0]);
  CHECK(third.pages[1] == first.pages[1]);
  CHECK(third.pages[2] != first.pages[2]);
  CHECK(memory.stats().hits == 1);
  CHECK(memory.stats().hit_tokens == static_cast<std::uint64_t>(2 * P));
}

TEST_CASE("a prompt that is cached as a whole still computes its last token in a page of its own") {
  kv_shard_memory memory({.pages = 12, .prefix = {.partial_pages = false}});
  const auto tokens = tokens_from(0, 3 * P);
  granted(memory, ask(1, tokens));
  memory.release({0, 1, {1, 0}, 0, *tokens});
  CHECK(memory.stats().cached == 3);
  const auto again = granted(memory, ask(2, tokens));
  CHECK(again.cached_tokens == 2 * P);
  CHECK(granted(memory, ask(3, tokens_from(0, 3 * P + 1))).cached_tokens == 3 * P);
}

TEST_CASE("with partial pages switched off, a page in part full is not published") {
  kv_shard_memory memory({.pages = 12, .prefix = {.partial_pages = false}});
  const auto tokens = tokens_from(0, 3 * P - 1);
  granted(memory, ask(1, tokens));
  memory.release({0, 1, {1, 0}, 0, *tokens});
  CHECK(memory.stats().cached == 2);
  memory.check_invariants();
}

TEST_CASE("a publication goes on where the last one ended") {
  kv_shard_memory memory({.pages = 12});
  const auto tokens = tokens_from(0, 4 * P);
  granted(memory, ask(1, tokens));
  memory.publish({0, 1, {1, 0}, 0, part(tokens, 0, P + 3)});
  memory.publish({0, 1, {1, 0}, P, part(tokens, P, 2 * P)});
  CHECK_THROWS_AS(memory.publish({0, 1, {1, 0}, P, part(tokens, P, 2 * P)}), check_failed);
  CHECK_THROWS_AS(memory.publish({0, 1, {1, 0}, 2 * P, std::vector<token_id>(3 * P)}), check_failed);
  memory.release({0, 1, {1, 0}, 2 * P, part(tokens, 2 * P, 4 * P)});
  CHECK(memory.stats().cached == 4);
  CHECK(memory.stats().free == 8);
  memory.check_invariants();
}

TEST_CASE("two that computed the same tokens at once end with one cached copy") {
  kv_shard_memory memory({.pages = 12});
  const auto tokens = tokens_from(0, 2 * P);
  granted(memory, ask(1, tokens, P));
  granted(memory, ask(2, tokens, P));
  memory.publish({0, 1, {1, 0}, 0, *tokens});
  memory.publish({0, 2, {2, 0}, 0, *tokens});
  memory.check_invariants();
  memory.release({0, 1, {1, 0}, 2 * P, {}});
  memory.check_invariants();
  CHECK(memory.stats().cached == 0); // lease 2's path
  memory.release({0, 2, {2, 0}, 2 * P, part(tokens_from(100, P), 0, P)});
  memory.check_invariants();
  CHECK(memory.stats().cached == 3);
  CHECK(memory.stats().free == 9);
}

TEST_CASE("cached pages give way to reservations, the least recently used first, but not those it shares") {
  kv_shard_memory memory({.pages = 6});
  const auto old_tokens = tokens_from(0, 2 * P);
  const auto new_tokens = tokens_from(1000, 2 * P);
  granted(memory, ask(1, old_tokens));
  memory.release({0, 1, {1, 0}, 0, *old_tokens});
  granted(memory, ask(2, new_tokens));
  memory.release({0, 2, {2, 0}, 0, *new_tokens});
  CHECK(memory.stats().cached == 4);
  const auto got = granted(memory, ask(3, tokens_from(0, 2 * P + 1), 2 * P)); // 2 shared, 3 fresh
  CHECK(got.cached_tokens == 2 * P);
  CHECK(got.pages.size() == 5);
  CHECK(memory.stats().evicted_pages == 1);
  CHECK(memory.stats().cached == 1);
}

TEST_CASE("when the batcher is gone all its leases return and what was published stays") {
  kv_shard_memory memory({.pages = 12});
  const auto tokens = tokens_from(0, 2 * P + 1);
  granted(memory, ask(1, tokens));
  granted(memory, ask(2, tokens_from(500, 2 * P)));
  memory.publish({0, 1, {1, 0}, 0, part(tokens, 0, 2 * P)});
  memory.release_all();
  memory.check_invariants();
  CHECK(memory.stats().leases == 0);
  CHECK(memory.stats().used == 0);
  CHECK(memory.stats().cached == 2);
  CHECK(granted(memory, ask(1, tokens)).cached_tokens == 2 * P); // a new batcher may count leases anew
}

TEST_CASE("without prefix reuse nothing is published") {
  kv_shard_memory memory({.pages = 12, .prefix = {.reuse = false}});
  const auto tokens = tokens_from(0, 2 * P + 1);
  granted(memory, ask(1, tokens));
  memory.release({0, 1, {1, 0}, 0, part(tokens, 0, 2 * P)});
  CHECK(memory.stats().free == 12);
  CHECK(granted(memory, ask(2, tokens)).cached_tokens == 0);
}

TEST_CASE("a shard holds its most leases and refuses the next") {
  kv_shard_memory memory({.pages = limits::kv_leases_max + 1});
  for (lease_id lease = 1; lease <= limits::kv_leases_max; ++lease)
    REQUIRE(std::holds_alternative<pages_reserved>(memory.reserve(ask(lease, tokens_from(0, 1)))));
  CHECK(refused(memory, ask(5000, tokens_from(0, 1))).fault.code == errc::no_memory);
  memory.release({0, 1, {1, 0}, 0, {}});
  granted(memory, ask(5000, tokens_from(0, 1)));
}

TEST_CASE("what a lease has ahead of its need comes back with its release and with its batcher's death") {
  for (const bool death : {false, true}) {
    kv_shard_memory memory({.pages = 20});
    granted(memory, ask(1, tokens_from(0, 8 * P)));
    CHECK(std::get<pages_grown>(memory.grow({0, 1, {1, 0}, 8 * P + 1, 100 * P})).added.size() == 4);
    if (death)
      memory.release_all();
    else
      memory.release({0, 1, {1, 0}, 0, {}});
    memory.check_invariants();
    CHECK(memory.stats().free == 20);
  }
}

TEST_CASE("a stale page is refused by its name") {
  kv_shard_memory memory({.index = 2, .first = 100, .pages = 12});
  const auto first = granted(memory, ask(1, tokens_from(0, 2 * P)));
  CHECK_FALSE(memory.stale_page(1, first.pages));
  memory.release({2, 1, {1, 0}, 0, {}});
  CHECK(memory.stale_page(1, first.pages) == "page 100 of shard 2 is stale: lease 1 is gone");
  const auto second = granted(memory, ask(2, tokens_from(0, P)));
  CHECK(memory.stale_page(2, {second.pages[0], 101}) == "page 101 of shard 2 is stale: lease 2 was not given it");
}

TEST_CASE("a lease is never reserved twice") {
  kv_shard_memory memory({.pages = 12});
  granted(memory, ask(1, tokens_from(0, 1)));
  CHECK_THROWS_AS(memory.reserve(ask(1, tokens_from(0, 1))), check_failed);
}
