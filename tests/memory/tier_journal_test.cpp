// What lies on disk is found by the next process: from records that are complete, late, missing or damaged.
#include <doctest/doctest.h>

#include <map>
#include <random>
#include <set>

#include "base/record_bytes.hpp"
#include "memory/tier_journal.hpp"
#include "tests/support/memory_records.hpp"
#include "tests/support/test_seeds.hpp"

using namespace troupe;
using troupe::testing::memory_records;

namespace {

constexpr auto P = static_cast<std::size_t>(limits::page_tokens);
constexpr std::size_t disk = index_of(tier_level::disk);
constexpr by_level<bool> everywhere{true, true};

tier_index_config slots(std::uint32_t host, std::uint32_t on_disk, std::uint32_t first = 0) {
  tier_index_config c;
  c.slots = {host, on_disk};
  c.first = {first, first};
  return c;
}

std::vector<token_id> block(int kind, std::size_t n = P) {
  return std::vector<token_id>(n, kind);
}

prefix_hash name_behind(const tier_index& index, tier_entry_id parent, std::span<const token_id> tokens) {
  return hash_tokens(parent == 0 ? hash_salt(1) : index.view(parent).name, tokens);
}

tier_entry_id put(tier_index& index, tier_entry_id parent, const std::vector<token_id>& tokens) {
  const auto added = index.add(1, parent, tokens, name_behind(index, parent, tokens));
  if (added.fresh)
    index.written(added.id, everywhere);
  return added.id;
}

// An index as a process has it that found these records.
struct process {
  process(std::shared_ptr<memory_records> kept, tier_index_config config) : journal(std::move(kept), 0), index(config) {
    found = *journal.read();
    journal.follow(index);
    index.check_invariants();
  }
  tier_journal journal;
  tier_index index;
  std::size_t found = 0;
};

std::vector<std::tuple<tier_entry_id, tier_entry_id, std::uint32_t, std::vector<token_id>>> contents(const tier_index& index) {
  std::vector<std::tuple<tier_entry_id, tier_entry_id, std::uint32_t, std::vector<token_id>>> out;
  for (const auto& r : index.records())
    out.emplace_back(r.id, r.parent, r.disk_slot, r.tokens);
  return out;
}

} // namespace

TEST_CASE("pages on disk are there for the next process, those of the host alone are not") {
  const auto records = std::make_shared<memory_records>();
  std::vector<std::tuple<tier_entry_id, tier_entry_id, std::uint32_t, std::vector<token_id>>> before;
  {
    process first(records, slots(8, 4));
    const auto a = put(first.index, 0, block(1)), b = put(first.index, a, block(-2));
    put(first.index, b, block(3, 5));
    put(first.index, a, block(2'000'000'000));
    put(first.index, a, block(5)); // the disk is full by now: something leaves it
    before = contents(first.index);
    CHECK(before.size() == 4);
  }
  process second(records, slots(8, 4));
  CHECK(second.found == 4);
  CHECK(contents(second.index) == before);
  CHECK(second.index.stats().used[0] == 0);
  CHECK(records->size() == 4);
  CHECK(put(second.index, 0, block(9)) > std::get<0>(before.back()));
}

TEST_CASE("what leaves the index leaves the records") {
  const auto records = std::make_shared<memory_records>();
  process p(records, slots(0, 10));
  const auto a = put(p.index, 0, block(1)), b = put(p.index, a, block(2));
  put(p.index, b, block(3));
  CHECK(records->size() == 3);
  const auto reading = p.index.read(b);
  p.index.was_read(b, reading, {move_end::damaged, {}});
  CHECK(records->size() == 1);
  CHECK(contents(process(records, slots(0, 10)).index).size() == 1);
}

TEST_CASE("a shard's successor begins with nothing, and so do the records") {
  const auto records = std::make_shared<memory_records>();
  tier_journal journal(records, 3);
  {
    tier_index index(slots(0, 10));
    journal.follow(index);
    put(index, 0, block(1));
    CHECK(records->size() == 1);
  }
  tier_index successor(slots(0, 10));
  journal.follow(successor);
  CHECK(successor.stats().entries == 0);
  CHECK(records->size() == 0);
  put(successor, 0, block(2));
  CHECK(records->size() == 1);
}

TEST_CASE("records of slots that are no longer the shard's are erased, and those of every shard where the file is another") {
  const auto records = std::make_shared<memory_records>();
  {
    process p(records, slots(0, 10));
    for (int i = 0; i < 10; ++i)
      put(p.index, 0, block(i));
  }
  process fewer(records, slots(0, 4));
  CHECK(fewer.found == 10);
  CHECK(fewer.index.stats().entries == 4);
  CHECK(records->size() == 4);
  tier_journal::forget_all(*records);
  CHECK(records->size() == 0);
}

TEST_CASE("records that say nonsense are not believed") {
  const auto records = std::make_shared<memory_records>();
  {
    process p(records, slots(0, 10));
    put(p.index, put(p.index, 0, block(1)), block(2));
  }
  auto& table = records->tables["tier 0"];
  REQUIRE(table.size() == 2);
  table["short key"] = table.begin()->second;
  table[record_key(77)] = "short value";
  table[record_key(78)] = std::string(6 * 8, '\xff'); // a count of tokens that are not there
  process p(records, slots(0, 10));
  CHECK(p.found == 2);
  CHECK(p.index.stats().entries == 2);
}

TEST_CASE("after a kill a slot's name tells which records are true, whatever came late or never") {
  std::size_t found_in_all = 0, stale_in_all = 0;
  for (const auto seed : testing::test_seeds(60)) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const auto below = [&](std::uint64_t n) { return random() % n; };
    auto records = std::make_shared<memory_records>();
    std::map<std::uint32_t, prefix_hash> file; // what each slot holds: survives a kill
    for (int life = 0; life < 4; ++life) {
      process p(records, slots(below(2) == 0 ? 0 : 6, 24));
      for (const auto& r : p.index.records()) { // found for exactly its tokens
        const auto parent = r.parent == 0 ? hash_salt(1) : p.index.view(r.parent).name;
        CHECK(r.name == hash_tokens(parent, r.tokens));
        const bool held = file.contains(r.disk_slot) && file[r.disk_slot] == r.name;
        ++(held ? found_in_all : stale_in_all);
      }
      const auto lateness = below(20);
      for (int step = 0; step < 300; ++step) {
        records->held = below(20) < lateness;
        std::vector<tier_entry_id> whole{0};
        for (const auto& r : p.index.records())
          if (r.tokens.size() == P)
            whole.push_back(r.id);
        const auto parent = whole[below(whole.size())];
        if (below(4) > 0) {
          const auto tokens = block(static_cast<int>(below(5)), below(3) == 0 ? 1 + below(P) : P);
          const auto added = p.index.add(1, parent, tokens, name_behind(p.index, parent, tokens));
          if (added.fresh) {
            const auto view = p.index.view(added.id);
            by_level<bool> holds{true, below(10) > 0};
            if (view.slots[disk])
              file[*view.slots[disk]] = holds[disk] ? view.name : prefix_hash{}; // a failed write leaves it damaged
            p.index.written(added.id, holds);
          }
        } else if (parent != 0 && p.index.contains(parent) && p.index.view(parent).stored) {
          const auto reading = p.index.read(parent);
          moved_page how{move_end::done, {true, true}};
          if (reading.from == tier_level::disk && !(file[*reading.slots[disk]] == p.index.view(parent).name))
            how = {move_end::damaged, {}}; // as tier_file tells
          p.index.was_read(parent, reading, how);
        }
        if (!records->held)
          records->work();
      }
      p.index.check_invariants();
      auto survived = std::make_shared<memory_records>(); // what waits dies with the process
      survived->tables = records->tables;
      records = survived;
    }
  }
  if (!std::getenv("TROUPE_SEED")) {
    CHECK(found_in_all > 500);
    CHECK(stale_in_all > 20); // else this shows nothing
  }
}
