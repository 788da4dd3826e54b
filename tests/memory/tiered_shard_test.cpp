// A shard with tiers, message by message: who waits for what, and what becomes of those who wait.
#include <doctest/doctest.h>

#include <numeric>

#include "memory/tiered_shard.hpp"

using namespace troupe;

namespace {

constexpr int P = limits::page_tokens;

std::vector<token_id> tokens_of(int kind, int n) {
  std::vector<token_id> out(static_cast<std::size_t>(n));
  std::iota(out.begin(), out.end(), kind * 1000);
  return out;
}

class scene {
public:
  explicit scene(std::uint32_t pages, std::uint32_t disk = 100, int ahead = 0) : shard(config(pages, disk, ahead)) {
    take(shard.steps_passed());
    take(shard.transfer_ready());
  }

  lease_id ask(const std::vector<token_id>& tokens, int need = 0) {
    reserve_pages r;
    r.lease = ++last_lease;
    r.id = {last_lease, 0};
    r.salt = 1;
    r.tokens = std::make_shared<const std::vector<token_id>>(tokens);
    r.need_tokens = std::max(need, static_cast<int>(tokens.size()));
    take(shard.reserve(r));
    return last_lease;
  }

  // Computes all of it, as if nothing were known.
  void compute(const std::vector<token_id>& tokens) {
    const auto lease = ask(tokens);
    REQUIRE(granted(lease));
    const int from = reserved.at(lease).shared_tokens;
    end(lease, from, {tokens.begin() + from, tokens.end()});
  }

  void end(lease_id lease, int from = 0, std::vector<token_id> tokens = {}) {
    if (granted(lease) && reserved.at(lease).copy_from)
      take(shard.publish({0, lease, {lease, 0}, from, {}, true}));
    take(shard.release({0, lease, {lease, 0}, from, std::move(tokens)}));
  }

  // The next move ends so.
  void deliver(move_end how = move_end::done) {
    REQUIRE(!moves.empty());
    const auto message = moves.front();
    moves.erase(moves.begin());
    pages_moved news{0, message.number, {}};
    for (const auto& move : message.moves) {
      moved_page one{how, {}};
      for (std::size_t i = 0; i < tier_levels; ++i)
        one.holds[i] = how == move_end::done && move.slots[i];
      news.moves.push_back(one);
    }
    take(shard.moved(news));
  }
  void deliver_all() {
    while (!moves.empty())
      deliver();
  }

  void take(shard_actions actions) {
    for (auto& action : actions) {
      if (auto* yes = std::get_if<pages_reserved>(&action))
        reserved[yes->lease] = *yes;
      else if (auto* no = std::get_if<pages_refused>(&action))
        refused[no->lease] = *no;
      else if (auto* move = std::get_if<move_pages>(&action))
        moves.push_back(*move);
    }
    shard.check_invariants();
  }

  bool granted(lease_id lease) const { return reserved.contains(lease); }
  int cached(lease_id lease) const { return reserved.at(lease).cached_tokens; }

  tiered_shard shard;
  std::map<lease_id, pages_reserved> reserved;
  std::map<lease_id, pages_refused> refused;
  std::vector<move_pages> moves;
  lease_id last_lease = 0;

private:
  static tiered_shard_config config(std::uint32_t pages, std::uint32_t disk, int ahead) {
    tiered_shard_config c;
    c.pages = {0, 0, pages, {}};
    c.tiers.index.slots = {0, disk};
    c.tiers.prefetch_ahead = ahead;
    return c;
  }
};

// One of 3 pages and a tail of 5 below, others' in the device.
const auto gone = tokens_of(1, 3 * P + 5);
void push_down(scene& s) {
  s.compute(gone);
  s.deliver_all();
  s.compute(tokens_of(2, 8 * P));
  s.deliver_all();
}

} // namespace

TEST_CASE("what was published is copied down a few pages at a time, those above first, and then leaves at no loss") {
  scene s(8);
  s.compute(gone);
  REQUIRE(s.moves.size() == 1);
  CHECK(s.moves[0].moves.size() == limits::tier_write_pages_max);
  CHECK(s.shard.stats().used == 4);
  s.deliver_all();
  CHECK(s.shard.stats().used == 0);
  CHECK(s.shard.tiers().pages_down == 4);
  s.compute(tokens_of(2, 8 * P));
  CHECK(s.shard.tiers().clean_evicted == 4);
  CHECK(s.shard.tiers().lost == 0);
}

TEST_CASE("a reservation waits for the pages that lie below, tail included, and others are served meanwhile") {
  scene s(8);
  push_down(s);
  auto next = gone;
  next.push_back(7);
  const auto lease = s.ask(next);
  CHECK(!s.granted(lease));
  REQUIRE(s.moves.size() == 1);
  CHECK(s.moves[0].moves.size() == 4);
  const auto other = s.ask(tokens_of(3, P));
  CHECK(s.granted(other));
  s.end(other);
  s.deliver();
  REQUIRE(s.granted(lease));
  CHECK(s.cached(lease) == static_cast<int>(gone.size()));
  CHECK(s.reserved.at(lease).shared_tokens == 3 * P);
  CHECK(s.shard.tiers().misses == 1);
  s.end(lease);
  s.deliver_all();
  CHECK(s.shard.quiet());
}

TEST_CASE("a second request for the same pages waits for the same load") {
  scene s(16);
  push_down(s);
  s.compute(tokens_of(4, 8 * P));
  s.deliver_all();
  s.compute(tokens_of(5, 8 * P));
  s.deliver_all();
  const auto one = s.ask(gone), two = s.ask(gone);
  CHECK(s.moves.size() == 1);
  s.deliver();
  CHECK(s.granted(one));
  CHECK(s.granted(two));
  CHECK(s.shard.tiers().pages_up[1] == 4);
}

TEST_CASE("a damaged page ends the load: what came before it is used, the rest is computed and never asked for again") {
  scene s(8);
  push_down(s);
  const auto lease = s.ask(gone);
  REQUIRE(s.moves.size() == 1);
  pages_moved news{0, s.moves[0].number, std::vector<moved_page>(4, {move_end::done, {false, true}})};
  news.moves[2] = {move_end::damaged, {}};
  s.moves.clear();
  s.take(s.shard.moved(news));
  REQUIRE(s.granted(lease));
  CHECK(s.cached(lease) == 2 * P);
  CHECK(s.shard.tiers().damaged == 1);
  CHECK(s.shard.tiers().index.dropped == 2);
}

TEST_CASE("moves that fail again and again are given up, and the prompt is computed") {
  scene s(8);
  push_down(s);
  const auto lease = s.ask(gone);
  for (int i = 0; i < limits::tier_waits_max; ++i) {
    REQUIRE(!s.granted(lease));
    REQUIRE(s.moves.size() == 1);
    pages_moved news{0, s.moves[0].number, std::vector<moved_page>(4, {move_end::failed, {false, true}})}; // by the device
    s.moves.clear();
    s.take(s.shard.moved(news));
  }
  REQUIRE(s.granted(lease));
  CHECK(s.cached(lease) == 0);
  CHECK(s.shard.tiers().index.dropped == 0);
}

TEST_CASE("the transfer stream's death answers all that wait, and its successor loads what lies there still") {
  scene s(8);
  push_down(s);
  const auto lease = s.ask(gone);
  CHECK(!s.granted(lease));
  s.moves.clear();
  s.take(s.shard.transfer_lost());
  REQUIRE(s.granted(lease));
  CHECK(s.cached(lease) == 0);
  s.end(lease);
  CHECK(s.granted(s.ask(tokens_of(3, P)))); // with no stream nobody waits
  s.take(s.shard.transfer_ready());
  const auto again = s.ask(gone);
  CHECK(!s.granted(again));
  s.deliver_all();
  CHECK(s.cached(again) == static_cast<int>(gone.size()) - 1);
}

TEST_CASE("a late answer of a stream that is gone changes nothing") {
  scene s(8);
  push_down(s);
  s.ask(gone);
  const auto late = s.moves.at(0);
  s.moves.clear();
  s.take(s.shard.transfer_lost());
  s.take(s.shard.transfer_ready());
  s.deliver_all();
  const auto before = s.shard.stats();
  s.take(s.shard.moved({0, late.number, std::vector<moved_page>(late.moves.size(), {move_end::done, {false, true}})}));
  CHECK(s.shard.stats().free == before.free);
}

TEST_CASE("a new batcher's request waits until the steps of the former one are over before pages come up") {
  scene s(8);
  push_down(s);
  s.shard.taken();
  CHECK(s.shard.awaits_steps());
  const auto lease = s.ask(gone);
  CHECK(!s.granted(lease));
  CHECK(s.moves.empty());
  s.take(s.shard.steps_passed());
  CHECK(s.moves.size() == 1);
  s.deliver();
  CHECK(s.granted(lease));
}

TEST_CASE("a load of a former batcher's request ends with the pages that were under way, and nobody hears of it") {
  scene s(40);
  const auto large = tokens_of(1, 36 * P);
  s.compute(large);
  s.deliver_all();
  s.compute(tokens_of(2, 40 * P));
  s.deliver_all();
  const auto lease = s.ask(large);
  REQUIRE(s.moves.size() == 1);
  CHECK(s.moves[0].moves.size() == limits::tier_load_pages_max);
  s.shard.taken();
  s.deliver();
  s.take(s.shard.steps_passed());
  CHECK(!s.granted(lease));
  CHECK(s.moves.empty());
  CHECK(s.shard.quiet());
  CHECK(s.shard.memory().position_of(1, large).depth == limits::tier_load_pages_max);
}

TEST_CASE("a request that no memory is left for waits for pages that are only held by a transfer") {
  scene s(4);
  s.compute(tokens_of(1, 4 * P));
  REQUIRE(s.moves.size() == 1); // on their way down: all pages are held
  const auto lease = s.ask(tokens_of(2, 4 * P));
  CHECK(!s.granted(lease));
  CHECK(!s.refused.contains(lease));
  s.deliver();
  CHECK(s.granted(lease));
}

TEST_CASE("growth that no memory is left for waits for a transfer, too, and is answered when its lease goes") {
  scene s(5);
  s.compute(tokens_of(1, 4 * P));
  const auto lease = s.ask(tokens_of(2, P));
  REQUIRE(s.granted(lease));
  s.take(s.shard.grow({0, lease, {lease, 0}, 2 * P, 2 * P}));
  CHECK(!s.refused.contains(lease));
  CHECK(s.shard.waiting() == 1);
  s.end(lease);
  CHECK(s.refused.at(lease).fault.code == errc::cancelled);
  CHECK(s.shard.waiting() == 0);
}

TEST_CASE("a request that could never fit is refused at once, whatever lies below") {
  scene s(8);
  push_down(s);
  const auto lease = s.ask(gone, 9 * P);
  CHECK(s.refused.at(lease).fault.code == errc::no_memory);
}

TEST_CASE("a prefetch takes no page that would be lost, is pinned, or belongs to one who is expected earlier") {
  scene s(8, 100, 2);
  const auto a = tokens_of(1, 3 * P), b = tokens_of(2, 3 * P), c = tokens_of(3, 3 * P), d = tokens_of(4, 3 * P);
  for (const auto& each : {a, b, c, d, a, b, c, d}) {
    const auto lease = s.ask(each);
    s.deliver_all();
    REQUIRE(s.granted(lease));
    const int from = s.reserved.at(lease).shared_tokens;
    s.end(lease, from, {each.begin() + from, each.end()});
    s.deliver_all();
  }
  // After d come a and b; a turn of d holds its three pages and one to write, a has three, so there is room for one of b's.
  const auto lease = s.ask(d);
  s.deliver_all();
  REQUIRE(s.granted(lease));
  const auto in_device = [&](const std::vector<token_id>& tokens) { return s.shard.memory().position_of(1, tokens).depth; };
  CHECK(in_device(a) == 3);
  CHECK(in_device(b) == 1);
  CHECK(in_device(d) == 3);
}

TEST_CASE("hints beyond the most are dropped, and so are those of what nobody knows") {
  scene s(64, 1000);
  for (int kind = 1; kind <= 8; ++kind) {
    s.compute(tokens_of(kind, 3 * P));
    s.deliver_all();
  }
  for (int kind = 20; kind < 30; ++kind) {
    s.compute(tokens_of(kind, 10 * P));
    s.deliver_all();
  }
  s.take(s.shard.hint(1, tokens_of(99, 50)));
  s.take(s.shard.hint(2, tokens_of(1, 3 * P)));
  CHECK(s.moves.empty());
  for (int kind = 1; kind <= 8; ++kind)
    s.take(s.shard.hint(1, tokens_of(kind, 3 * P)));
  CHECK(s.moves.size() == limits::prefetches_max);
  s.deliver_all();
  CHECK(s.shard.tiers().prefetched == 3 * limits::prefetches_max);
  const auto lease = s.ask(tokens_of(1, 3 * P + 1));
  CHECK(s.cached(lease) == 3 * P);
  CHECK(s.shard.tiers().prefetch_used == 3);
}

TEST_CASE("a shard without tiers answers everything at once") {
  tiered_shard shard({{0, 0, 8, {}}, {}});
  CHECK(!shard.has_tiers());
  CHECK(!shard.awaits_steps());
  reserve_pages r;
  r.lease = 1;
  r.tokens = std::make_shared<const std::vector<token_id>>(tokens_of(1, 20));
  r.need_tokens = 20;
  CHECK(std::holds_alternative<pages_reserved>(shard.reserve(r).at(0)));
  CHECK(std::holds_alternative<pages_grown>(shard.grow({0, 1, {}, 40, 40}).at(0)));
  CHECK(shard.publish({0, 1, {}, 0, tokens_of(1, 20)}).empty());
  CHECK(std::holds_alternative<pages_released>(shard.release({0, 1, {}, 16, {}}).at(0)));
  CHECK(shard.hint(0, tokens_of(1, 20)).empty());
  CHECK(shard.quiet());
}
