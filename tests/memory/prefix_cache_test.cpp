#include "memory/prefix_cache.hpp"

#include <doctest/doctest.h>

#include <numeric>

#include "base/check.hpp"

using namespace troupe;

namespace {

constexpr auto block_tokens = static_cast<std::size_t>(limits::page_tokens);

std::vector<token_id> tokens_from(token_id first, std::size_t n) {
  std::vector<token_id> out(n);
  std::iota(out.begin(), out.end(), first);
  return out;
}

page_block block(const std::vector<token_id>& tokens, std::size_t i) {
  return std::span(tokens).subspan(i * block_tokens).first<block_tokens>();
}

// Publishes all whole blocks of `tokens` from fresh pages and lets them go.
std::vector<page_handle> fill(page_pool& pool, prefix_cache& cache, std::uint64_t salt, const std::vector<token_id>& tokens) {
  auto pages = *pool.allocate(static_cast<std::uint32_t>(tokens.size() / block_tokens));
  auto at = cache.root(salt);
  for (std::size_t i = 0; i < pages.size(); ++i)
    REQUIRE(cache.publish(at, block(tokens, i), pages[i]) == pages[i]);
  for (const auto& page : pages)
    cache.release(page);
  return pages;
}

prefix_hash same_for_all(prefix_hash, page_block) { return {1, 1}; }

prefix_hash forgetful(prefix_hash, page_block tokens) { return {static_cast<std::uint64_t>(tokens[0]), 0}; }

} // namespace

TEST_CASE("published pages are found again, as far as the tokens agree") {
  page_pool pool(0, 8);
  prefix_cache cache(pool);
  auto tokens = tokens_from(0, 3 * block_tokens);
  const auto pages = fill(pool, cache, 5, tokens);
  CHECK(cache.idle_pages() == 3);
  CHECK(pool.free_pages() == 5);

  tokens[2 * block_tokens + 3] = 999; // the third block differs
  auto at = cache.root(5);
  const auto found = cache.find(at, tokens, 9);
  CHECK(found == std::vector(pages.begin(), pages.begin() + 2));
  CHECK(at.depth == 2);
  CHECK(cache.idle_pages() == 1);
  cache.check_invariants();
  for (const auto& page : found)
    cache.release(page);
  CHECK(cache.idle_pages() == 3);
  cache.check_invariants();
}

TEST_CASE("only whole blocks are found, and no more than asked for") {
  page_pool pool(0, 8);
  prefix_cache cache(pool);
  const auto tokens = tokens_from(0, 3 * block_tokens);
  fill(pool, cache, 5, tokens);
  auto at = cache.root(5);
  CHECK(cache.find(at, std::span(tokens).first(2 * block_tokens - 1), 9).size() == 1);
  at = cache.root(5);
  CHECK(cache.find(at, tokens, 2).size() == 2);
}

TEST_CASE("another tenant's salt finds nothing") {
  page_pool pool(0, 8);
  prefix_cache cache(pool);
  const auto tokens = tokens_from(0, 2 * block_tokens);
  fill(pool, cache, 5, tokens);
  auto at = cache.root(6);
  CHECK(cache.find(at, tokens, 9).empty());
}

TEST_CASE("a block is found only behind the blocks it was computed behind") {
  page_pool pool(0, 8);
  prefix_cache cache(pool);
  const auto tokens = tokens_from(0, 2 * block_tokens);
  fill(pool, cache, 5, tokens);
  auto at = cache.root(5);
  CHECK(cache.find(at, std::span(tokens).subspan(block_tokens), 9).empty());
}

TEST_CASE("a second page with the same tokens stays private, its publisher goes on below the first") {
  page_pool pool(0, 8);
  prefix_cache cache(pool);
  const auto tokens = tokens_from(0, 2 * block_tokens);
  const auto first = pool.allocate(1)->front();
  const auto second = *pool.allocate(2);
  auto at_first = cache.root(5);
  auto at_second = cache.root(5);
  CHECK(cache.publish(at_first, block(tokens, 0), first) == first);
  CHECK(cache.publish(at_second, block(tokens, 0), second[0]) == first);
  CHECK(cache.stats().duplicates == 1);
  CHECK(cache.publish(at_second, block(tokens, 1), second[1]) == second[1]);
  CHECK_FALSE(cache.holds(second[0].page));
  CHECK(pool.references(first) == 3); // tree, first publisher, second publisher
  cache.release(first);
  CHECK(cache.idle_pages() == 0); // the second still holds it as its path
  cache.check_invariants();
  for (const auto& page : {first, second[0], second[1]})
    cache.release(page);
  CHECK(cache.idle_pages() == 2);
  CHECK(pool.free_pages() == 6);
  cache.check_invariants();
}

TEST_CASE("eviction takes the least recently used leaf first, and a parent only after its children") {
  page_pool pool(0, 8);
  prefix_cache cache(pool);
  const auto old_chain = fill(pool, cache, 5, tokens_from(0, 2 * block_tokens));
  const auto new_chain = fill(pool, cache, 5, tokens_from(1000, 2 * block_tokens));
  CHECK(cache.evict(1) == 1);
  CHECK_FALSE(cache.holds(old_chain[1].page));
  CHECK(cache.holds(old_chain[0].page));
  CHECK(cache.evict(1) == 1);
  CHECK_FALSE(cache.holds(old_chain[0].page));
  CHECK(cache.holds(new_chain[0].page));
  CHECK(cache.holds(new_chain[1].page));
  cache.check_invariants();
  CHECK(cache.evict(9) == 2);
  CHECK(cache.nodes() == 0);
  CHECK(pool.free_pages() == 8);
  cache.check_invariants();
}

TEST_CASE("a use makes a chain recent") {
  page_pool pool(0, 8);
  prefix_cache cache(pool);
  const auto tokens = tokens_from(0, block_tokens);
  const auto first = fill(pool, cache, 5, tokens);
  const auto second = fill(pool, cache, 5, tokens_from(1000, block_tokens));
  auto at = cache.root(5);
  cache.release(cache.find(at, tokens, 1).front());
  CHECK(cache.evict(1) == 1);
  CHECK(cache.holds(first[0].page));
  CHECK_FALSE(cache.holds(second[0].page));
}

TEST_CASE("what is held is never evicted") {
  page_pool pool(0, 4);
  prefix_cache cache(pool);
  const auto tokens = tokens_from(0, 2 * block_tokens);
  fill(pool, cache, 5, tokens);
  auto at = cache.root(5);
  const auto held = cache.find(at, tokens, 1);
  CHECK(cache.evict(9) == 1); // the leaf below
  CHECK(cache.holds(held[0].page));
  CHECK(pool.valid(held[0]));
  cache.check_invariants();
}

TEST_CASE("tokens decide, not hashes: a collision is not found and not published") {
  page_pool pool(0, 8);
  prefix_cache cache(pool, &same_for_all);
  const auto tokens = tokens_from(0, block_tokens);
  const auto others = tokens_from(1000, block_tokens);
  fill(pool, cache, 5, tokens);
  auto at = cache.root(5);
  CHECK(cache.find(at, others, 1).empty());
  const auto page = pool.allocate(1)->front();
  CHECK_FALSE(cache.publish(at, block(others, 0), page));
  CHECK(cache.stats().collisions == 1);
  CHECK_FALSE(cache.holds(page.page));
  cache.check_invariants();
}

TEST_CASE("a hash that forgets what came before does not lead behind another beginning") {
  page_pool pool(0, 8);
  prefix_cache cache(pool, &forgetful);
  auto tokens = tokens_from(0, 2 * block_tokens);
  fill(pool, cache, 5, tokens);
  auto others = tokens;
  others[1] = 77; // the same hash for both blocks, another first block
  auto at = cache.root(5);
  CHECK(cache.find(at, others, 2).empty());
  at = cache.root(6); // and another salt
  CHECK(cache.find(at, tokens, 2).empty());
}

TEST_CASE("the same block behind two beginnings is two places, even under one hash") {
  page_pool pool(0, 8);
  prefix_cache cache(pool, &forgetful);
  auto tokens = tokens_from(0, 2 * block_tokens);
  fill(pool, cache, 5, tokens);
  auto others = tokens;
  others[0] = 77; // another hash for the first block; the second is the same and hashes to the same
  fill(pool, cache, 5, std::vector(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(block_tokens)));
  auto at = cache.root(5);
  CHECK(cache.find(at, others, 2).size() == 1);
  cache.check_invariants();
}

TEST_CASE("the chained hash tells blocks, their order and salts apart") {
  const auto a = tokens_from(0, block_tokens);
  const auto b = tokens_from(1, block_tokens);
  const auto root = hash_salt(1);
  CHECK(hash_block(root, block(a, 0)) == hash_block(root, block(a, 0)));
  CHECK_FALSE(hash_block(root, block(a, 0)) == hash_block(root, block(b, 0)));
  CHECK_FALSE(hash_block(root, block(a, 0)) == hash_block(hash_salt(2), block(a, 0)));
  CHECK_FALSE(hash_block(hash_block(root, block(a, 0)), block(b, 0)) == hash_block(hash_block(root, block(b, 0)), block(a, 0)));
}
