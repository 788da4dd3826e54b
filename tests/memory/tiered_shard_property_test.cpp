// Random operations on a shard with tiers against a model that keeps in every page, and in every slot below, the names of the
// tokens that a backend would have put there: whatever comes up must be exactly what a lease may read.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <string>

#include "memory/tiered_shard.hpp"
#include "tests/support/prefix_names.hpp"
#include "tests/support/test_seeds.hpp"

using namespace troupe;
using testing::append;

namespace {

constexpr int P = limits::page_tokens;
constexpr int operations_a_seed = 10'000;
constexpr std::size_t seeds = 25;

using cells = std::array<std::uint64_t, static_cast<std::size_t>(P)>;

struct totals {
  std::uint64_t up = 0, down = 0, misses = 0, prefetch_used = 0, damaged = 0, failed = 0, cancelled = 0, losses = 0, takes = 0,
                evicted = 0, clean = 0, covered = 0, expired = 0, dropped = 0, late_room = 0, grants = 0, hints = 0,
                from_host = 0;
};

class world {
public:
  explicit world(std::uint64_t seed)
      : random_(seed), pages_(static_cast<std::uint32_t>(4 + below(40))), shard_(config()), device_(pages_),
        calm_(below(3) == 0) {
    act(shard_.steps_passed());
    act(shard_.transfer_ready());
  }

  void step() {
    const int kind = below(1000);
    if (kind < 200)
      reserve();
    else if (kind < 260)
      grow();
    else if (kind < 480)
      publish();
    else if (kind < 650)
      release();
    else if (kind < 900)
      deliver();
    else if (kind < 930)
      cancel();
    else if (kind < 960)
      hint();
    else if (kind < 975 && !calm_)
      transfer_ ? lose_transfer() : find_transfer();
    else if (kind < 980 && !calm_)
      take();
    else if (kind < 990)
      pass_steps();
    else
      shard_.pass(now_ += std::chrono::seconds(below(30)));
    if (++steps_ % 4 == 0)
      shard_.check_invariants();
  }

  void end(totals& sum) {
    if (!transfer_)
      find_transfer();
    pass_steps();
    while (!leases_.empty() || !asked_.empty() || !moves_.empty() || !shard_.quiet()) {
      if (!moves_.empty())
        deliver();
      else if (!leases_.empty())
        release();
      else {
        REQUIRE(!asked_.empty()); // else something waits for nothing
        REQUIRE_MESSAGE(false, "an ask is never answered");
      }
      shard_.check_invariants();
    }
    const auto s = shard_.stats();
    REQUIRE(s.used == 0);
    REQUIRE(s.held == 0);
    REQUIRE(s.free + s.cached == pages_);
    const auto t = shard_.tiers();
    sum.up += t.pages_up[0] + t.pages_up[1];
    sum.from_host += t.pages_up[0];
    sum.down += t.pages_down;
    sum.misses += t.misses;
    sum.prefetch_used += t.prefetch_used;
    sum.damaged += t.damaged;
    sum.failed += t.failed;
    sum.evicted += t.index.evicted[0] + t.index.evicted[1];
    sum.clean += t.clean_evicted;
    sum.covered += t.index.covered;
    sum.expired += t.index.expired;
    sum.dropped += t.index.dropped;
    for (auto member : {&totals::cancelled, &totals::losses, &totals::takes, &totals::grants, &totals::hints})
      sum.*member += seen_.*member;
  }

private:
  struct lease {
    std::uint64_t salt = 0;
    std::vector<token_id> tokens;
    std::vector<page_id> pages;
    int published = 0; // whole pages
    std::optional<page_id> copy_from;
    int cached = 0;
  };
  struct asked {
    reserve_pages reservation;
    std::optional<grow_pages> growth;
  };
  struct flight {
    move_pages message;
    std::vector<cells> sent; // of pages on their way down
  };
  struct copy {
    prefix_hash name;
    cells content{};
    bool torn = true;
  };

  int below(std::uint64_t n) { return static_cast<int>(random_() % n); }

  tiered_shard_config config() {
    tiered_shard_config c;
    c.pages = {0, static_cast<page_id>(below(100)), pages_, {}};
    c.pages.prefix.partial_pages = below(5) > 0;
    c.tiers.index.first = {7, 3};
    const auto some = [&] { return static_cast<std::uint32_t>(below(3) == 0 ? below(10) : 40 + below(300)); };
    c.tiers.index.slots = {below(3) == 0 ? 0 : some(), below(3) == 0 ? 0 : some()};
    if (c.tiers.index.slots[0] + c.tiers.index.slots[1] == 0)
      c.tiers.index.slots[1] = 50;
    c.tiers.index.time_to_live = std::chrono::seconds(below(3) == 0 ? 400 : 0);
    c.tiers.prefetch_ahead = below(3);
    first_ = c.pages.first;
    for (std::size_t i = 0; i < tier_levels; ++i)
      below_[i].resize(c.tiers.index.first[i] + c.tiers.index.slots[i]);
    return c;
  }

  cells& at(page_id page) { return device_.at(page - first_); }

  std::vector<token_id> some_tokens(int n) {
    std::vector<token_id> out;
    while (static_cast<int>(out.size()) < n) {
      const int kind = below(4);
      const int fork = below(3) == 0 ? below(P) : P - 1;
      for (int i = 0; i < P; ++i)
        out.push_back(kind * 10 + (i >= fork ? below(2) : 0));
    }
    out.resize(static_cast<std::size_t>(n));
    return out;
  }

  // -- what the batcher does --

  void reserve() {
    auto& recent = recent_[static_cast<std::size_t>(turn_++ % recent_.size())];
    if (recent.empty() || below(4) == 0)
      recent = some_tokens(1 + below(6 * P));
    auto tokens = recent;
    if (below(3) > 0) {
      const auto more = some_tokens(1 + below(2 * P));
      tokens.insert(tokens.end(), more.begin(), more.end());
      if (tokens.size() < 12 * P)
        recent = tokens;
    }
    if (below(6) == 0)
      tokens.resize(1 + random_() % tokens.size());
    reserve_pages ask;
    ask.lease = next_lease_++;
    ask.id = {ask.lease, 0};
    ask.salt = 1 + random_() % 2;
    ask.need_tokens = static_cast<int>(tokens.size()) + below(P);
    ask.headroom_pages = below(5) == 0 ? static_cast<std::uint32_t>(below(4)) : 0;
    ask.tokens = std::make_shared<const std::vector<token_id>>(std::move(tokens));
    asked_[ask.lease] = {ask, {}};
    act(shard_.reserve(ask));
  }

  template <class Map>
  auto any(Map& m) {
    return std::next(m.begin(), below(m.size()));
  }

  void grow() {
    if (leases_.empty())
      return;
    const auto& [id, l] = *any(leases_);
    if (asked_.contains(id))
      return;
    const int need = static_cast<int>(l.tokens.size()) + 1 + below(2 * P);
    const grow_pages ask{0, id, {id, 0}, need, need + below(P)};
    asked_[id].growth = ask;
    act(shard_.grow(ask));
  }

  // A step: the copy, then the rest of the tokens that its pages hold.
  void compute(lease& l) {
    if (l.copy_from)
      at(l.pages[static_cast<std::size_t>(l.published / P)]) = at(*l.copy_from);
    std::uint64_t h = check(l, l.cached);
    const int room = static_cast<int>(l.pages.size()) * P;
    const int wish = std::min(room, static_cast<int>(l.tokens.size()) + below(P));
    const auto more = some_tokens(std::max(0, wish - static_cast<int>(l.tokens.size())));
    l.tokens.insert(l.tokens.end(), more.begin(), more.end());
    for (int i = l.cached; i < static_cast<int>(l.tokens.size()); ++i) {
      h = append(h, l.tokens[static_cast<std::size_t>(i)]);
      auto& page = at(l.pages.at(static_cast<std::size_t>(i / P)));
      page[static_cast<std::size_t>(i % P)] = h;
    }
    l.cached = static_cast<int>(l.tokens.size());
  }

  // The first `n` cells hold the names of their tokens.
  std::uint64_t check(const lease& l, int n) {
    std::uint64_t h = l.salt;
    for (int i = 0; i < n; ++i) {
      h = append(h, l.tokens[static_cast<std::size_t>(i)]);
      REQUIRE(at(l.pages[static_cast<std::size_t>(i / P)])[static_cast<std::size_t>(i % P)] == h);
    }
    return h;
  }

  publish_pages publication(lease_id id, lease& l) {
    compute(l);
    publish_pages tell{0, id, {id, 0}, l.published, {}, l.copy_from.has_value()};
    tell.tokens.assign(l.tokens.begin() + l.published, l.tokens.end());
    l.copy_from.reset();
    return tell;
  }

  void publish() {
    if (leases_.empty())
      return;
    auto& [id, l] = *any(leases_);
    const auto tell = publication(id, l);
    l.published += static_cast<int>(tell.tokens.size()) / P * P;
    act(shard_.publish(tell));
  }

  void release() {
    if (leases_.empty())
      return;
    const auto found = any(leases_);
    const auto id = found->first;
    release_pages tell{0, id, {id, 0}, found->second.published, {}};
    if (below(4) > 0) {
      const auto all = publication(id, found->second);
      if (all.copied)
        act(shard_.publish({0, id, {id, 0}, found->second.published, {}, true}));
      tell.tokens = all.tokens;
    }
    released_.insert(id);
    leases_.erase(found);
    act(shard_.release(tell));
    REQUIRE(released_.empty());
    REQUIRE(!asked_.contains(id));
  }

  void cancel() {
    if (asked_.empty())
      return;
    const auto id = any(asked_)->first;
    if (leases_.contains(id))
      return;
    ++seen_.cancelled;
    released_.insert(id);
    act(shard_.release({0, id, {id, 0}, 0, {}}));
    REQUIRE(!asked_.contains(id));
    REQUIRE(released_.empty());
  }

  void hint() {
    ++seen_.hints;
    const auto& recent = recent_[random_() % recent_.size()];
    act(shard_.hint(1 + random_() % 2, recent));
  }

  void take() {
    ++seen_.takes;
    leases_.clear();
    asked_.clear();
    shard_.taken();
  }

  void pass_steps() {
    if (shard_.awaits_steps())
      act(shard_.steps_passed());
  }

  // -- what the transfer stream does --

  void lose_transfer() {
    ++seen_.losses;
    transfer_ = false;
    for (const auto& f : moves_) // some of it was done, perhaps half
      for (const auto& move : f.message.moves)
        for (std::size_t i = 0; i < tier_levels; ++i)
          if (move.way == move_way::down && move.slots[i] && below(2))
            below_[i].at(*move.slots[i]).torn = true;
    moves_.clear();
    writable_.clear();
    act(shard_.transfer_lost());
  }

  void find_transfer() {
    transfer_ = true;
    act(shard_.transfer_ready());
  }

  moved_page carry_down(const page_move& move, const cells& sent) {
    REQUIRE(at(move.page) == sent); // nobody wrote it meanwhile
    moved_page how{move_end::done, {}};
    for (std::size_t i = 0; i < tier_levels; ++i) {
      if (!move.slots[i])
        continue;
      auto& slot = below_[i].at(*move.slots[i]);
      slot = {move.name, sent, false};
      how.holds[i] = true;
      if (!calm_ && below(40) == 0) {
        slot.torn = true;
        how.holds[i] = false;
        how.end = move_end::failed;
      }
    }
    return how;
  }

  moved_page carry_up(const page_move& move) {
    const auto from = index_of(move.from);
    const auto& slot = below_[from].at(move.slots[from].value());
    REQUIRE(writable_.erase(move.page) == 1);
    moved_page how;
    how.end = !calm_ && below(40) == 0 ? move_end::failed : move_end::done;
    if (how.end == move_end::done && (slot.torn || !(slot.name == move.name) || (!calm_ && below(40) == 0)))
      how.end = move_end::damaged;
    if (calm_)
      REQUIRE(how.end == move_end::done); // what the index says is there
    if (how.end != move_end::done)
      return how;
    at(move.page) = slot.content;
    how.holds[from] = true;
    if (from == 1 && move.slots[0]) {
      below_[0].at(*move.slots[0]) = slot;
      how.holds[0] = true;
    }
    return how;
  }

  void deliver() {
    if (moves_.empty())
      return;
    const auto f = std::move(moves_.front());
    moves_.pop_front();
    pages_moved news{0, f.message.number, {}};
    for (std::size_t i = 0; i < f.message.moves.size(); ++i) {
      const auto& move = f.message.moves[i];
      news.moves.push_back(move.way == move_way::down ? carry_down(move, f.sent[i]) : carry_up(move));
    }
    act(shard_.moved(news));
  }

  // -- what the shard wants done --

  void act(shard_actions actions) {
    for (auto& action : actions)
      std::visit([this](auto& a) { on(a); }, action);
  }

  void own(const lease& l, page_id page) {
    for (const auto& [id, other] : leases_)
      REQUIRE(std::find(other.pages.begin(), other.pages.end(), page) == other.pages.end());
    for (const auto& f : moves_)
      for (const auto& move : f.message.moves)
        REQUIRE(move.page != page);
    at(page).fill(~l.salt);
  }

  void on(const pages_reserved& got) {
    REQUIRE(asked_.contains(got.lease));
    const auto ask = asked_.at(got.lease).reservation;
    asked_.erase(got.lease);
    ++seen_.grants;
    lease l{ask.salt, *ask.tokens, got.pages, got.shared_tokens, got.copy_from, got.cached_tokens};
    REQUIRE(got.pages.size() == pages_for(ask.need_tokens));
    REQUIRE(got.cached_tokens < static_cast<int>(ask.tokens->size()));
    check(l, got.shared_tokens);
    for (auto i = static_cast<std::size_t>(got.shared_tokens / P); i < l.pages.size(); ++i)
      own(l, l.pages[i]);
    if (l.copy_from) {
      std::uint64_t h = check(l, l.published);
      for (int i = l.published; i < l.cached; ++i) {
        h = append(h, l.tokens[static_cast<std::size_t>(i)]);
        REQUIRE(at(*l.copy_from)[static_cast<std::size_t>(i % P)] == h);
      }
    }
    leases_.emplace(got.lease, std::move(l));
  }

  void on(const pages_grown& got) {
    REQUIRE(asked_.erase(got.lease) == 1);
    auto& l = leases_.at(got.lease);
    for (const auto page : got.added) {
      own(l, page);
      l.pages.push_back(page);
    }
  }

  void on(const pages_refused& no) {
    REQUIRE(asked_.erase(no.lease) == 1);
    if (no.fault.code == errc::no_memory && leases_.empty() && asked_.empty())
      REQUIRE(no.report.available() == pages_); // else the batcher would think that it can never be done
  }

  void on(const pages_released& done) { REQUIRE(released_.erase(done.lease) == 1); }

  void on(const move_pages& message) {
    REQUIRE(transfer_);
    REQUIRE(!shard_.awaits_steps());
    flight f{message, {}};
    for (const auto& move : message.moves) {
      f.sent.push_back(at(move.page));
      if (move.way == move_way::down)
        continue;
      for (const auto& [id, l] : leases_) // it is nobody's
        REQUIRE(std::find(l.pages.begin(), l.pages.end(), move.page) == l.pages.end());
      at(move.page).fill(~0ull);
      REQUIRE(writable_.insert(move.page).second);
    }
    moves_.push_back(std::move(f));
  }

  std::mt19937_64 random_;
  std::uint32_t pages_;
  page_id first_ = 0;
  by_level<std::vector<copy>> below_;
  tiered_shard shard_;
  std::vector<cells> device_;
  bool calm_; // nothing fails
  bool transfer_ = true;
  std::deque<flight> moves_;
  std::set<page_id> writable_; // on their way up
  std::map<lease_id, lease> leases_;
  std::map<lease_id, asked> asked_;
  std::set<lease_id> released_;
  std::array<std::vector<token_id>, 6> recent_; // conversations, in turn
  std::size_t turn_ = 0;
  lease_id next_lease_ = 1;
  std::uint64_t steps_ = 0;
  steady_time now_{};
  totals seen_;
};

} // namespace

TEST_CASE("a quarter of a million random operations with tiers give every ask one answer and every lease exactly its tokens") {
  totals sum;
  for (const auto seed : testing::test_seeds(seeds)) {
    CAPTURE(seed);
    world w(seed);
    for (int i = 0; i < operations_a_seed; ++i) {
      CAPTURE(i);
      w.step();
    }
    w.end(sum);
  }
  MESSAGE(sum.grants << " grants, " << sum.misses << " with pages below, " << sum.up << " pages up (" << sum.from_host
                     << " from the host), " << sum.down << " down, " << sum.prefetch_used << " prefetched and used, "
                     << sum.damaged << " damaged, " << sum.failed << " failed, " << sum.cancelled << " cancelled, "
                     << sum.losses << " losses of the stream, " << sum.takes << " takes, " << sum.clean << " clean evictions, "
                     << sum.evicted << " evicted below, " << sum.covered << " covered, " << sum.expired << " expired, "
                     << sum.dropped << " dropped");
  if (std::getenv("TROUPE_SEED"))
    return;
  for (const auto n : {sum.grants, sum.misses, sum.up, sum.from_host, sum.down, sum.prefetch_used, sum.damaged, sum.failed,
                       sum.cancelled, sum.losses, sum.takes, sum.clean, sum.evicted, sum.covered, sum.expired, sum.dropped})
    CHECK(n > 20); // the run was worth it only if it reached all of these
}
