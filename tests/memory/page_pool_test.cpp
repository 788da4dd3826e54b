#include "memory/page_pool.hpp"

#include <doctest/doctest.h>

#include "base/check.hpp"
#include "config/limits.hpp"

using namespace troupe;

namespace {

std::vector<page_id> ids(const std::vector<page_handle>& pages) {
  std::vector<page_id> out;
  for (const auto& page : pages)
    out.push_back(page.page);
  return out;
}

} // namespace

TEST_CASE("a pool gives out each page of its range once, in one run where it can") {
  page_pool pool(100, 8);
  const auto got = pool.allocate(8);
  REQUIRE(got);
  CHECK(ids(*got) == std::vector<page_id>{100, 101, 102, 103, 104, 105, 106, 107});
  CHECK(pool.free_pages() == 0);
  CHECK_FALSE(pool.allocate(1));
  CHECK_FALSE(pool.owns(99));
  CHECK_FALSE(pool.owns(108));
  pool.check_invariants();
}

TEST_CASE("an allocation that does not fit takes nothing") {
  page_pool pool(0, 4);
  CHECK_FALSE(pool.allocate(5));
  CHECK(pool.free_pages() == 4);
  pool.check_invariants();
}

TEST_CASE("pages behind the sequence's last one are preferred, then the smallest run that holds all, then the longest") {
  page_pool pool(0, 16);
  const auto all = *pool.allocate(16);
  for (const int i : {1, 4, 5, 8, 9, 10})
    pool.release(all[static_cast<std::size_t>(i)]);
  // free: 1 | 4 5 | 8 9 10
  CHECK(ids(*pool.allocate(1, 7)) == std::vector<page_id>{8});
  CHECK(ids(*pool.allocate(2)) == std::vector<page_id>{4, 5});
  pool.check_invariants();
  // free: 1 | 9 10
  CHECK(ids(*pool.allocate(3)) == std::vector<page_id>{9, 10, 1});
  CHECK(pool.free_pages() == 0);
  pool.check_invariants();
}

TEST_CASE("runs that meet become one again") {
  page_pool pool(0, 3);
  const auto all = *pool.allocate(3);
  pool.release(all[0]);
  pool.release(all[2]);
  pool.release(all[1]);
  pool.check_invariants();
  CHECK(ids(*pool.allocate(3)) == std::vector<page_id>{0, 1, 2});
}

TEST_CASE("a page is free after its last reference, and its handle is stale from then on") {
  page_pool pool(7, 1);
  const auto page = pool.allocate(1)->front();
  pool.retain(page);
  CHECK(pool.references(page) == 2);
  CHECK_FALSE(pool.release(page));
  CHECK(pool.valid(page));
  CHECK(pool.release(page));
  CHECK_FALSE(pool.valid(page));
  CHECK_THROWS_AS(pool.release(page), check_failed);
  CHECK_THROWS_AS(pool.retain(page), check_failed);

  const auto again = pool.allocate(1)->front();
  CHECK(again.page == page.page);
  CHECK(again.generation != page.generation);
  CHECK_THROWS_AS(pool.retain(page), check_failed);
  CHECK_FALSE(pool.valid(page));
  CHECK(pool.valid(again));
}

TEST_CASE("a pool of more pages than the limit is our own mistake") {
  CHECK_THROWS_AS(page_pool(0, limits::kv_pages_max + 1), check_failed);
  CHECK_THROWS_AS(page_pool(UINT32_MAX - 3, 8), check_failed);
}

TEST_CASE("an empty pool refuses everything but nothing") {
  page_pool pool(0, 0);
  CHECK(pool.allocate(0)->empty());
  CHECK_FALSE(pool.allocate(1));
  pool.check_invariants();
}
