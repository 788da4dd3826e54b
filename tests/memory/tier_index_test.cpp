// What a shard knows of its pages below the device: found by their tokens alone, within bounds, the oldest gone first.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "memory/tier_index.hpp"
#include "tests/support/test_seeds.hpp"

using namespace troupe;

namespace {

constexpr auto P = static_cast<std::size_t>(limits::page_tokens);
constexpr by_level<bool> everywhere{true, true}, nowhere{false, false};

std::vector<token_id> block(int kind, std::size_t n = P) {
  return std::vector<token_id>(n, kind);
}

tier_index_config slots(std::uint32_t host, std::uint32_t disk) {
  tier_index_config c;
  c.slots = {host, disk};
  return c;
}

prefix_hash name_behind(const tier_index& index, tier_entry_id parent, std::span<const token_id> tokens) {
  return hash_tokens(parent == 0 ? hash_salt(1) : index.view(parent).name, tokens);
}

tier_entry_id put(tier_index& index, tier_entry_id parent, const std::vector<token_id>& tokens) {
  const auto added = index.add(1, parent, tokens, name_behind(index, parent, tokens));
  if (added.fresh)
    index.written(added.id, everywhere);
  index.check_invariants();
  return added.id;
}

std::vector<token_id> joined(std::initializer_list<std::vector<token_id>> parts) {
  std::vector<token_id> out;
  for (const auto& part : parts)
    out.insert(out.end(), part.begin(), part.end());
  return out;
}

} // namespace

TEST_CASE("entries are found along whole pages, behind exactly their parents and under their salt") {
  tier_index index(slots(0, 10));
  const auto a = put(index, 0, block(1)), b = put(index, a, block(2)), c = put(index, b, block(3, 5));
  CHECK(index.find(1, joined({block(1), block(2), block(9)}), 9) == std::vector{a, b});
  CHECK(index.find(1, joined({block(1), block(2)}), 1) == std::vector{a});
  CHECK(index.find(2, block(1), 9).empty());
  CHECK(index.find(1, block(2), 9).empty());
  CHECK(index.path(c) == std::vector{a, b, c});
  CHECK(index.closest(1, b, joined({block(3, 3), block(8, 4)})).id == c);
  CHECK(index.closest(1, b, joined({block(3, 3), block(8, 4)})).tokens == 3);
  CHECK(index.closest(1, 0, block(3, 5)).id == 0);
  CHECK(index.named(index.view(c).name) == c);
  CHECK(!index.add(1, a, block(2), {}).fresh);
}

TEST_CASE("an entry is not found before it is written, and not at all where that failed, nor what stood behind it") {
  tier_index index(slots(4, 4));
  const auto first = index.add(1, 0, block(1), {1, 1});
  CHECK(first.fresh);
  CHECK(index.find(1, block(1), 1).empty());
  const auto second = index.add(1, first.id, block(2), {2, 2}); // on its way, too
  const auto third = index.add(1, second.id, block(3), {3, 3});
  index.written(first.id, {false, true}); // one copy is enough
  CHECK(index.find(1, block(1), 1) == std::vector{first.id});
  CHECK(!index.view(first.id).slots[0]);
  CHECK(index.stats().used == by_level<std::uint32_t>{2, 3});
  index.written(second.id, nowhere);
  CHECK(!index.contains(second.id));
  CHECK(!index.contains(third.id));
  CHECK(index.stats().used == by_level<std::uint32_t>{1, 2}); // the third's write has not ended
  index.check_invariants();
  index.written(third.id, everywhere);
  CHECK(index.stats().used == by_level<std::uint32_t>{0, 1});
  CHECK(index.stats().dropped == 2);
  index.check_invariants();
}

TEST_CASE("the least recently used leaf goes first, and never what stands above another or is being moved") {
  tier_index index(slots(0, 3));
  const auto a = put(index, 0, block(1)), b = put(index, a, block(2)), c = put(index, 0, block(3));
  index.touch(b);
  const auto d = put(index, 0, block(4));
  CHECK(!index.contains(c));
  index.touch(d);
  const auto reading = index.read(b);
  const auto e = put(index, 0, block(5)); // b is the oldest, but locked, and a stands above it
  CHECK(index.contains(b));
  CHECK(!index.contains(d));
  const auto locked = index.read(e);
  CHECK(index.add(1, 0, block(6), {}).id == 0); // nothing may go
  index.was_read(e, locked, {move_end::done, {false, true}});
  index.was_read(b, reading, {move_end::done, {false, true}});
  index.check_invariants();
}

TEST_CASE("room for a page is not taken from those above it") {
  tier_index index(slots(0, 1));
  const auto a = put(index, 0, block(1));
  CHECK(index.add(1, a, block(2), {}).id == 0);
  CHECK(index.contains(a));
  index.check_invariants();
}

TEST_CASE("the host holds copies of what lies on disk, gives them up without loss, and gets them back when they are read") {
  tier_index index(slots(2, 10));
  std::vector<tier_entry_id> ids;
  for (int i = 0; i < 4; ++i)
    ids.push_back(put(index, 0, block(i)));
  for (int i = 0; i < 4; ++i)
    CHECK(index.view(ids[static_cast<std::size_t>(i)]).slots[0].has_value() == (i >= 2));
  CHECK(index.stats().entries == 4);
  const auto up = index.read(ids[0]);
  CHECK(up.from == tier_level::disk);
  CHECK(up.slots[0].has_value());
  index.was_read(ids[0], up, {move_end::done, everywhere});
  CHECK(index.view(ids[0]).slots[0] == up.slots[0]);
  const auto again = index.read(ids[0]);
  CHECK(again.from == tier_level::host);
  index.was_read(ids[0], again, {move_end::damaged, nowhere}); // the other copy is left
  CHECK(index.contains(ids[0]));
  CHECK(!index.view(ids[0]).slots[0]);
  const auto last = index.read(ids[0]);
  index.was_read(ids[0], last, {move_end::damaged, nowhere});
  CHECK(!index.contains(ids[0]));
  index.check_invariants();
}

TEST_CASE("a read that the device refused leaves the copy where it is") {
  tier_index index(slots(0, 2));
  const auto a = put(index, 0, block(1));
  index.was_read(a, index.read(a), {move_end::failed, {false, true}});
  CHECK(index.contains(a));
  index.was_read(a, index.read(a), {move_end::failed, nowhere}); // but one that the disk refused does not
  CHECK(!index.contains(a));
}

TEST_CASE("a tail gives way to what begins with it, and one that is covered already is not kept twice") {
  tier_index index(slots(0, 10));
  const auto tail = put(index, 0, block(1, 6));
  const auto longer = put(index, 0, block(1, 9));
  CHECK(!index.contains(tail));
  CHECK(put(index, 0, block(1, 4)) == longer);
  const auto whole = put(index, 0, block(1));
  CHECK(!index.contains(longer));
  CHECK(index.closest(1, 0, block(1, 4)).id == whole);
  CHECK(index.stats().entries == 1);
}

TEST_CASE("what nobody used for its time goes, from the end of each path") {
  auto config = slots(0, 10);
  config.time_to_live = std::chrono::seconds(100);
  tier_index index(config);
  const steady_time start{std::chrono::seconds(1000)};
  index.expire(start);
  const auto a = put(index, 0, block(1)), b = put(index, a, block(2)), c = put(index, a, block(3));
  index.expire(start + std::chrono::seconds(60));
  index.touch(c);
  index.expire(start + std::chrono::seconds(101));
  CHECK(!index.contains(b));
  CHECK(index.contains(a));
  CHECK(index.contains(c));
  index.expire(start + std::chrono::seconds(160));
  CHECK(index.stats().entries == 0);
  CHECK(index.stats().expired == 3);
  index.check_invariants();
}

TEST_CASE("records bring back what lay on disk; those that contradict others are left out") {
  std::map<tier_entry_id, tier_record> kept;
  tier_index index(slots(2, 20));
  index.observe({[&](const tier_record& r) { kept[r.id] = r; }, [&](tier_entry_id id) { CHECK(kept.erase(id) == 1); }});
  const auto a = put(index, 0, block(1)), b = put(index, a, block(2));
  put(index, b, block(3, 7));
  put(index, a, block(4));
  put(index, 0, block(5));
  index.was_read(b, index.read(b), {move_end::done, everywhere});
  const auto records = index.records();
  CHECK(records.size() == 5);
  CHECK(kept.size() == 5);
  for (const auto& r : records)
    CHECK(kept.at(r.id).disk_slot == r.disk_slot);

  tier_index restored(slots(2, 20));
  restored.restore(records);
  restored.check_invariants();
  CHECK(restored.find(1, joined({block(1), block(2)}), 9) == std::vector{a, b});
  CHECK(restored.closest(1, b, block(3, 7)).tokens == 7);
  CHECK(restored.stats().entries == 5);
  CHECK(put(restored, b, block(6)) > records.back().id); // no number twice

  auto wrong = records;
  wrong[1].disk_slot = wrong[0].disk_slot; // b in a's place: b goes, and what stood behind it
  wrong[4].disk_slot = 20;                 // beyond the file
  tier_index careful(slots(2, 20));
  careful.restore(wrong);
  careful.check_invariants();
  CHECK(careful.find(1, joined({block(1), block(2)}), 9) == std::vector{a});
  CHECK(careful.stats().entries == 2);
}

TEST_CASE("what is dropped is told, whether it goes for room, by age, by damage or because another covers it") {
  std::set<tier_entry_id> kept;
  auto config = slots(1, 3);
  config.time_to_live = std::chrono::seconds(10);
  tier_index index(config);
  index.observe(
      {[&](const tier_record& r) { CHECK(kept.insert(r.id).second); }, [&](tier_entry_id id) { CHECK(kept.erase(id) == 1); }});
  for (const auto seed : testing::test_seeds(3)) {
    std::mt19937_64 random(seed);
    steady_time now{};
    std::vector<tier_entry_id> ids{0};
    for (int i = 0; i < 3000; ++i) {
      const auto parent = ids[random() % ids.size()];
      if (parent != 0 && (!index.contains(parent) || index.view(parent).tokens.size() < P))
        continue;
      const auto tokens = block(static_cast<int>(random() % 4), random() % 2 ? P : 1 + random() % P);
      const auto added = index.add(1, parent, tokens, name_behind(index, parent, tokens));
      if (added.fresh)
        index.written(added.id, {random() % 4 > 0, random() % 4 > 0});
      ids.push_back(added.id);
      if (added.id != 0 && index.contains(added.id) && random() % 8 == 0)
        index.was_read(added.id, index.read(added.id),
                       {random() % 2 ? move_end::damaged : move_end::done, {random() % 2 > 0, random() % 2 > 0}});
      if (random() % 20 == 0)
        index.expire(now += std::chrono::seconds(random() % 12));
      index.check_invariants();
      std::set<tier_entry_id> on_disk;
      for (const auto& r : index.records())
        on_disk.insert(r.id);
      REQUIRE(on_disk == kept);
    }
  }
  CHECK(index.stats().evicted[1] > 20);
  CHECK(index.stats().expired > 5);
  CHECK(index.stats().dropped > 20);
  CHECK(index.stats().covered > 5);
}
