// Random operations on a shard's memory against a model that writes into pages as a backend would: what a lease shares, copies
// or starts from must hold exactly its tokens, and what it writes must be its own.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <random>
#include <string>

#include "base/random.hpp"
#include "memory/kv_shard_memory.hpp"
#include "tests/support/prefix_names.hpp"

using namespace troupe;
using testing::append;
using testing::name_of;
using testing::state_named;

namespace {

constexpr int P = limits::page_tokens;
constexpr int operations_a_seed = 50'000;
constexpr std::uint64_t seeds = 20; // 1,000,000 operations

class model {
public:
  explicit model(std::uint64_t seed)
      : random_(seed), pages_(static_cast<std::uint32_t>(1 + random_() % 64)), first_(static_cast<page_id>(random_() % 1000)),
        policy_(make_policy()), memory_({.index = 0, .first = first_, .pages = pages_, .prefix = policy_}),
        slots_(std::size_t{pages_} * P) {}

  void step() {
    const auto kind = random_() % 100;
    if (leases_.empty() || kind < 30)
      reserve();
    else if (kind < 42)
      grow();
    else if (kind < 70)
      compute_and_publish();
    else if (kind < 95)
      release();
    else if (kind < 97)
      memory_.release(release_pages{0, next_lease_ + 1000, {}, 0, {}}); // a late one
    else if (kind == 97 && random_() % 50 == 0)
      release_all();
    else
      memory_.pass(now_ += std::chrono::seconds(random_() % 40));
    check();
  }

  void end() {
    while (!leases_.empty())
      release();
    memory_.check_invariants();
    const auto s = memory_.stats();
    REQUIRE(s.used == 0);
    REQUIRE(s.free + s.cached == pages_);
  }

  const kv_shard_memory& memory() const { return memory_; }
  void check_all() const { memory_.check_invariants(); }
  std::uint64_t refusals = 0, shared = 0, late_growth = 0;

private:
  struct lease {
    std::uint64_t salt = 0;
    std::vector<token_id> tokens; // beyond those reserved for, what it would generate
    int prompt = 0;               // of them, those reserved for
    std::vector<page_id> pages;
    int computed = 0;
    int published = 0; // whole pages
    std::optional<page_id> copy_from; // not copied yet
    bool copied = false;              // and not told yet
  };

  prefix_policy make_policy() {
    prefix_policy p;
    p.partial_pages = below(5) > 0;
    p.prompt_states = below(4) > 0 ? static_cast<std::uint32_t>(1 + below(6)) : 0;
    p.eviction = below(2) ? eviction_policy::lru : eviction_policy::lfu;
    p.time_to_live = std::chrono::seconds(below(2) ? 0 : 20);
    p.pinned_percent = below(60);
    return p;
  }

  int below(std::uint64_t n) { return static_cast<int>(random_() % n); }

  std::uint64_t& slot(page_id page, int position) {
    return slots_.at(std::size_t{page - first_} * P + static_cast<std::size_t>(position % P));
  }
  std::uint64_t& slot(const lease& l, int position) { return slot(l.pages.at(static_cast<std::size_t>(position / P)), position); }

  // The name of the first `n` tokens; all slots before `checked` must hold theirs.
  std::uint64_t name(const lease& l, int n, int checked) {
    std::uint64_t h = l.salt;
    for (int i = 0; i < n; ++i) {
      h = append(h, l.tokens[static_cast<std::size_t>(i)]);
      if (i < checked)
        REQUIRE(slot(l, i) == h); // no stale read: exactly these tokens behind exactly these
    }
    return h;
  }

  // Blocks of few kinds, so that beginnings meet.
  std::vector<token_id> some_tokens(int n) {
    std::vector<token_id> out;
    while (static_cast<int>(out.size()) < n) {
      const int kind = below(3);
      const int fork = below(4) == 0 ? below(P) : P - 1;
      for (int i = 0; i < P; ++i)
        out.push_back(kind * 10 + (i >= fork ? below(2) : 0));
    }
    out.resize(static_cast<std::size_t>(n));
    return out;
  }

  void reserve() {
    lease l;
    l.salt = 1 + random_() % 2;
    l.tokens = some_tokens(1 + below(6 * P));
    auto& recent = recent_[static_cast<std::size_t>(below(recent_.size()))];
    if (below(3) == 0 && !recent.empty())
      l.tokens = recent;
    else
      recent = l.tokens;
    const int n = l.prompt = static_cast<int>(l.tokens.size());
    const int need = n + below(2 * P);
    const auto headroom = below(4) == 0 ? static_cast<std::uint32_t>(below(8)) : 0;
    const lease_id id = next_lease_++;
    const auto before = memory_.stats();
    const auto answer = memory_.reserve({0, id, {id, 0}, std::make_shared<const std::vector<token_id>>(l.tokens), l.salt, need,
                                         headroom, below(3) > 0});
    if (const auto* no = std::get_if<pages_refused>(&answer)) {
      ++refusals;
      REQUIRE(no->report.available() == before.free + before.cached);
      REQUIRE(pages_for(need) + headroom + (leases_.empty() ? 0 : before.pinned) > no->report.available());
      return;
    }
    const auto& got = std::get<pages_reserved>(answer);
    REQUIRE(got.pages.size() == pages_for(need));
    REQUIRE(got.cached_tokens < n + (got.state ? 1 : 0));
    REQUIRE(got.shared_tokens % P == 0);
    REQUIRE(got.shared_tokens < n);
    REQUIRE(got.copy_from.has_value() == (got.cached_tokens > got.shared_tokens));
    REQUIRE(got.cached_tokens <= got.shared_tokens + P);
    REQUIRE(got.report.available() >= headroom);
    l.pages = got.pages;
    l.computed = got.cached_tokens;
    l.published = got.shared_tokens;
    l.copy_from = got.copy_from;
    const auto read = name(l, n, got.shared_tokens);
    if (got.state) {
      REQUIRE(got.cached_tokens == n);
      REQUIRE(name_of(*got.state) == read);
    }
    shared += static_cast<std::uint64_t>(got.shared_tokens / P);
    for (std::size_t i = static_cast<std::size_t>(got.shared_tokens / P); i < l.pages.size(); ++i)
      own(l.pages[i], id);
    if (l.copy_from)
      check_source(l);
    leases_.emplace(id, std::move(l));
  }

  void own(page_id page, lease_id id) {
    for (const auto& [other, l] : leases_) // no double owner
      REQUIRE(std::find(l.pages.begin(), l.pages.end(), page) == l.pages.end());
    for (int i = 0; i < P; ++i)
      slot(page, i) = id; // it may write there from now on
  }

  void check_source(const lease& l) {
    std::uint64_t h = name(l, l.published, 0);
    for (int i = l.published; i < l.computed; ++i) {
      h = append(h, l.tokens[static_cast<std::size_t>(i)]);
      REQUIRE(slot(*l.copy_from, i) == h);
    }
  }

  auto any() { return std::next(leases_.begin(), below(leases_.size())); }

  void grow() {
    auto& [id, l] = *any();
    const auto before = l.pages.size();
    const int need = 1 + below(10 * P);
    const int most = need + below(4 * P);
    const auto answer = memory_.grow({0, id, {id, 0}, need, most});
    if (std::holds_alternative<pages_refused>(answer)) {
      ++late_growth;
      return;
    }
    for (const auto page : std::get<pages_grown>(answer).added) {
      own(page, id);
      l.pages.push_back(page);
    }
    REQUIRE(static_cast<int>(l.pages.size()) * P >= need);
    REQUIRE(l.pages.size() <= std::max<std::size_t>(before, pages_for(most)));
  }

  // A step copies, then fills the lease's pages, often up to the prompt's end; false: it failed.
  bool compute(lease& l) {
    if (l.copy_from) {
      check_source(l);
      const auto to = l.pages[static_cast<std::size_t>(l.published / P)];
      for (int i = 0; i < P; ++i)
        slot(to, i) = slot(*l.copy_from, i);
      if (below(4) == 0)
        return false; // so the copy is to be made again
      l.copy_from.reset();
      l.copied = true;
    }
    const int room = static_cast<int>(l.pages.size()) * P;
    const int wish = below(2) ? std::max(l.prompt, l.computed) : l.computed + below(3 * P);
    const int to = std::min(room, wish);
    if (static_cast<int>(l.tokens.size()) < to) {
      const auto more = some_tokens(to - static_cast<int>(l.tokens.size()));
      l.tokens.insert(l.tokens.end(), more.begin(), more.end());
    }
    std::uint64_t h = name(l, l.computed, l.computed);
    for (int i = l.computed; i < to; ++i)
      slot(l, i) = h = append(h, l.tokens[static_cast<std::size_t>(i)]);
    l.computed = to;
    return true;
  }

  std::vector<token_id> unpublished(const lease& l) const {
    return {l.tokens.begin() + l.published, l.tokens.begin() + std::max(l.published, l.copy_from ? 0 : l.computed)};
  }

  void compute_and_publish() {
    auto& [id, l] = *any();
    if (!compute(l) || below(3) == 0)
      return;
    publish_pages tell{0, id, {id, 0}, l.published, unpublished(l), l.copied, below(10) == 0, nullptr};
    if (below(3) == 0)
      tell.tokens.resize(tell.tokens.size() / P * P); // only whole pages
    else if (l.computed == l.prompt)
      tell.state = state_named(name(l, l.prompt, l.prompt));
    memory_.publish(tell);
    l.copied = false;
    l.published += static_cast<int>(tell.tokens.size()) / P * P;
  }

  void release() {
    const auto at = any();
    auto& l = at->second;
    const bool more = below(4) > 0 && compute(l);
    memory_.release({0, at->first, {at->first, 0}, l.published, more ? unpublished(l) : std::vector<token_id>{}});
    leases_.erase(at);
  }

  void release_all() {
    memory_.release_all();
    leases_.clear();
  }

  void check() {
    const auto s = memory_.stats();
    REQUIRE(s.free + s.cached + s.used == pages_);
    REQUIRE(s.leases == leases_.size());
    REQUIRE(s.states <= policy_.prompt_states);
    REQUIRE(s.pinned <= pages_ * static_cast<std::uint32_t>(policy_.pinned_percent) / 100);
    if (leases_.empty())
      REQUIRE(s.used == 0);
  }

  std::mt19937_64 random_;
  std::uint32_t pages_;
  page_id first_;
  prefix_policy policy_;
  kv_shard_memory memory_;
  std::vector<std::uint64_t> slots_;
  lease_id next_lease_ = 1;
  std::map<lease_id, lease> leases_;
  std::array<std::vector<token_id>, 3> recent_; // prompts that are asked for again
  steady_time now_{};
};

} // namespace

TEST_CASE("a million random operations leak no page, give none to two owners and share none with other tokens") {
  const char* given = std::getenv("TROUPE_SEED");
  const std::uint64_t first = given ? std::strtoull(given, nullptr, 10) : 1;
  const std::uint64_t last = given ? first : seeds;
  MESSAGE("seeds " << first << ".." << last << "; TROUPE_SEED=n repeats one");
  std::uint64_t shared = 0, refusals = 0;
  kv_shard_stats sum;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    CAPTURE(seed);
    model m(seed);
    for (int i = 0; i < operations_a_seed; ++i) {
      CAPTURE(i);
      m.step();
      if (i % 8 == 0)
        m.check_all();
    }
    m.end();
    shared += m.shared;
    refusals += m.refusals + m.late_growth;
    const auto s = m.memory().stats();
    sum.evicted_pages += s.evicted_pages;
    sum.expired_pages += s.expired_pages;
    sum.covered_pages += s.covered_pages;
    sum.published_pages += s.published_pages;
    sum.copied_tokens += s.copied_tokens;
    sum.state_hits += s.state_hits;
    sum.pins_refused += s.pins_refused;
    sum.pinned += s.pinned;
  }
  MESSAGE(shared << " pages shared, " << sum.copied_tokens << " tokens copied, " << sum.state_hits << " states hit, "
                 << sum.evicted_pages << " pages evicted, " << sum.expired_pages << " expired, " << sum.covered_pages
                 << " covered, " << sum.pins_refused << " pins refused");
  if (given)
    return;
  for (const auto n : {shared, refusals, sum.evicted_pages, sum.expired_pages, sum.covered_pages, sum.published_pages,
                       sum.copied_tokens, sum.state_hits, sum.pins_refused})
    CHECK(n > 1000); // the run was worth it only if it reached all of these
  CHECK(sum.pinned > 0);
}
