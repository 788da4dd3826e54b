// Random loads on batch_schedule: requests, cancels, delays, refusals, faults, and deaths of shards, of the compute stream and
// of the batcher, in any order. The world checks each promise as it goes; here we check that all ends well.
#include <doctest/doctest.h>

#include <cstdlib>
#include <random>

#include "batch_world.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr int events_a_seed = 3000;
constexpr std::uint64_t seeds = 200;

struct totals {
  std::uint64_t requests = 0, finished = 0, failed = 0, cancelled = 0, preemptions = 0, requeued = 0, late = 0,
                failed_steps = 0, cached = 0, restarts = 0, resumed = 0, copied = 0, growth = 0, refusals = 0, queue_full = 0,
                outgrown = 0, evictions = 0, loaded = 0, stored = 0, prefetched = 0;
};

class simulation {
public:
  explicit simulation(std::uint64_t seed)
      : random_(seed), config_(make_config()), world_(config_, make_policy(), make_tiers()),
        submissions_(5 + below(40)), device_trouble_(below(2) == 0) {}

  void run(totals& sum) {
    for (int i = 0; i < events_a_seed; ++i) {
      CAPTURE(i);
      event();
      if (i % 64 == 0)
        world_.check();
      world_.pass(0.01 * below(20));
    }
    settle();
    world_.run_until_idle();
    world_.pump();
    world_.check_all_returned();
    judge(sum);
  }

  const std::string& trace() const { return world_.trace(); }

private:
  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  std::uint32_t any_shard() { return static_cast<std::uint32_t>(below(static_cast<int>(world_.shard_count()))); }

  batch_schedule_config make_config() {
    batch_schedule_config c;
    const int n = 1 + below(4);
    for (int i = 0; i < n; ++i)
      c.shard_pages.push_back(static_cast<std::uint32_t>(4 + below(30)));
    c.running_max = 1 + below(12);
    c.waiting_max = 4 + below(20);
    c.step_tokens = 1 + below(48);
    c.first_reservation_tokens = 1 + below(40);
    c.admission_lookahead_tokens = below(60);
    return c;
  }

  prefix_policy make_policy() {
    prefix_policy p;
    p.reuse = below(8) != 0;
    p.partial_pages = below(4) != 0;
    p.prompt_states = below(3) != 0 ? 6 : 0;
    p.eviction = below(2) ? eviction_policy::lru : eviction_policy::lfu;
    config_.prompt_states = p.prompt_states > 0;
    return p;
  }

  tier_config make_tiers() {
    tier_config t;
    if (below(3) == 0)
      return t;
    const auto some = [this] { return static_cast<std::uint32_t>(below(3) == 0 ? 0 : 5 + below(200)); };
    t.index.slots = {some(), some()};
    t.prefetch_ahead = below(3);
    return t;
  }

  void event() {
    const auto shard = any_shard();
    const int kind = below(1000);
    if (kind < submissions_)
      submit();
    else if (kind < submissions_ + 6)
      cancel();
    else if (kind < 400)
      deliver_to(shard);
    else if (kind < 720)
      deliver_from(shard);
    else if (kind < 790)
      world_.deliver_move();
    else if (kind < 960)
      world_.end_step(faulty());
    else if (kind < 965 && device_trouble_)
      world_.fail_step();
    else if (kind < 970)
      lose_or_restart(shard);
    else if (kind < 975 && device_trouble_)
      world_.compute_alive() ? world_.kill_compute() : world_.restart_compute();
    else if (kind == 975)
      restart_batcher();
    else if (kind == 976)
      world_.transfer_alive() ? world_.kill_transfer() : world_.restart_transfer();
    else if (kind < 980 && device_trouble_)
      world_.refuse_next(below(2) ? errc::timeout : errc::unavailable, 1);
    else if (!world_.compute_alive())
      world_.restart_compute();
    else if (!world_.known_alive(shard) && !world_.alive(shard))
      world_.restart_shard(shard);
  }

  std::set<std::uint64_t> faulty() {
    if (!device_trouble_ || !world_.step_running() || below(60) > 0)
      return {};
    const auto& sequences = world_.plan().sequences;
    return {sequences[random_() % sequences.size()].id.number};
  }

  void deliver_to(std::uint32_t shard) {
    if (world_.alive(shard))
      world_.deliver_to_shard(shard);
  }

  void deliver_from(std::uint32_t shard) { world_.deliver_from_shard(shard); }

  void lose_or_restart(std::uint32_t shard) {
    if (world_.alive(shard))
      world_.kill_shard(shard);
    else if (world_.known_alive(shard))
      world_.notice_lost(shard);
    else
      world_.restart_shard(shard);
  }

  void restart_batcher() {
    ++restarts_;
    add(world_.schedule().stats());
    world_.restart_batcher();
  }

  void submit() {
    auto prompt = prompt_of(below(4), 1 + below(below(4) == 0 ? 120 : 40));
    if (below(3) == 0 && !world_.sessions().empty()) { // once more
      const auto& former = world_.sessions().rbegin()->second;
      prompt.assign(former.tokens.begin(), former.tokens.begin() + former.request.prompt_length);
    }
    if (below(4) == 0 && !world_.sessions().empty()) { // a chat goes on
      const auto& former = world_.session(1 + random_() % world_.sessions().rbegin()->first);
      if (former.tokens.size() < 150) {
        const auto more = prompt_of(below(4), 1 + below(20));
        prompt = former.tokens;
        prompt.insert(prompt.end(), more.begin(), more.end());
      }
    }
    auto r = world_.request(std::move(prompt), below(10) == 0 ? 0 : 1 + below(80));
    r.salt = random_() % 2;
    r.priority = below(3) - 1;
    r.ignore_eos = below(4) == 0;
    r.context_tokens = below(5) == 0 ? 1 + below(100) : 100'000;
    if (below(5) == 0) {
      r.window = {below(3), 1 + below(4)};
      r.ring_pages = r.window.recent_pages + 1 + below(3);
      r.max_new_tokens *= 3;
    } else if (below(5) == 0) {
      r.budget_tokens = limits::page_tokens * (2 + below(5));
      r.keep_percent = 10 + below(80);
      r.max_new_tokens *= 2;
    }
    for (int i = below(3); i > 0; --i)
      r.end_tokens.push_back(below(vocabulary));
    if (below(4) == 0) {
      auto sampling = *r.sampling;
      sampling.repetition_penalty = 1.1f;
      r.sampling = std::make_shared<const sampling_params>(sampling);
    }
    if (below(5) == 0)
      r.affinity = random_() % 3;
    r.pin = below(20) == 0;
    world_.submit(r);
  }

  void cancel() {
    if (world_.sessions().empty())
      return;
    const auto last = world_.sessions().rbegin()->first;
    const auto number = last - std::min<std::uint64_t>(last - 1, random_() % 20);
    world_.cancel(world_.session(number).request.id);
  }

  // Everything that died comes back, nothing fails any more.
  void settle() {
    world_.refuse_next(errc::ok, 0);
    for (std::uint32_t i = 0; i < world_.shard_count(); ++i) {
      if (world_.alive(i) && world_.known_alive(i))
        continue;
      if (world_.known_alive(i))
        world_.notice_lost(i);
      world_.restart_shard(i);
    }
    if (!world_.compute_alive())
      world_.restart_compute();
    if (!world_.transfer_alive())
      world_.restart_transfer();
  }

  // Of one batcher's life.
  void add(const batch_schedule_stats& life) {
    stats_.preemptions += life.preemptions;
    stats_.requeued += life.requeued;
    stats_.late_answers += life.late_answers;
    stats_.failed_steps += life.failed_steps;
    stats_.cached_tokens += life.cached_tokens;
    stats_.resumed += life.resumed;
    stats_.evictions += life.evictions;
  }

  void judge(totals& sum) {
    for (const auto& [number, s] : world_.sessions()) {
      CAPTURE(number);
      REQUIRE(s.ended());
      ++sum.requests;
      sum.finished += s.finished.has_value();
      sum.outgrown += s.finished && s.finished->usage.dropped_tokens > 0;
      sum.cancelled += s.cancelled_at_step.has_value();
      if (!s.failed)
        continue;
      ++sum.failed;
      CAPTURE(s.failed->fault.message);
      CAPTURE(s.request.prompt_length);
      switch (s.failed->fault.code) {
      case errc::queue_full: ++sum.queue_full; break;
      case errc::no_memory: REQUIRE(s.generated() == 0); break;
      case errc::context_full: REQUIRE(s.request.prompt_length >= s.request.context_tokens); break;
      case errc::unavailable: REQUIRE(device_trouble_); break; // a shard did not answer
      default: REQUIRE(s.may_fail); break;
      }
    }
    add(world_.schedule().stats());
    sum.preemptions += stats_.preemptions;
    sum.requeued += stats_.requeued;
    sum.late += stats_.late_answers;
    sum.failed_steps += stats_.failed_steps;
    sum.cached += stats_.cached_tokens;
    sum.resumed += stats_.resumed;
    sum.evictions += stats_.evictions;
    sum.restarts += restarts_;
    for (std::uint32_t i = 0; i < world_.shard_count(); ++i) {
      sum.growth += world_.memory(i).stats().growths;
      sum.refusals += world_.memory(i).stats().refusals;
      sum.copied += world_.memory(i).stats().copied_tokens;
      const auto tiers = world_.shard(i).tiers();
      sum.loaded += tiers.pages_up[0] + tiers.pages_up[1];
      sum.stored += tiers.pages_down;
      sum.prefetched += tiers.prefetch_used;
    }
  }

  std::mt19937_64 random_;
  batch_schedule_config config_;
  batch_world world_;
  int submissions_; // in 1000 events
  bool device_trouble_; // else the only troubles are deaths of shards and batchers, which end no request
  batch_schedule_stats stats_;
  std::uint64_t restarts_ = 0;
};

} // namespace

TEST_CASE("whatever dies, is cancelled, refused or late: one end a request, its own tokens, and every page back") {
  const char* given = std::getenv("TROUPE_SEED");
  const std::uint64_t first = given ? std::strtoull(given, nullptr, 10) : 1;
  const char* count = std::getenv("TROUPE_SEEDS");
  const std::uint64_t last = first + (count ? std::strtoull(count, nullptr, 10) : given ? 1 : seeds) - 1;
  MESSAGE("seeds " << first << ".." << last << "; TROUPE_SEED=n repeats one, TROUPE_SEEDS=m goes on to n + m - 1");
  totals sum;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    CAPTURE(seed);
    simulation s(seed);
    s.run(sum);
  }
  MESSAGE(sum.requests << " requests: " << sum.finished << " finished (" << sum.cancelled << " cancelled), " << sum.failed
                       << " failed; " << sum.preemptions << " pre-emptions, " << sum.requeued << " requeued, " << sum.growth
                       << " growths, " << sum.refusals << " refusals, " << sum.late << " late answers, " << sum.failed_steps
                       << " failed steps, " << sum.restarts << " batcher deaths, " << sum.cached << " cached tokens, " << sum.copied
                       << " copied, " << sum.resumed << " resumed, " << sum.outgrown << " outgrew their window or budget, "
                       << sum.evictions << " evictions, " << sum.stored << " pages stored below, " << sum.loaded << " loaded, "
                       << sum.prefetched << " prefetched and used");
  if (given || count)
    return;
  for (const auto n : {sum.finished, sum.failed, sum.cancelled, sum.preemptions, sum.requeued, sum.growth, sum.refusals,
                       sum.late, sum.failed_steps, sum.restarts, sum.cached, sum.copied, sum.resumed, sum.queue_full,
                       sum.outgrown, sum.evictions, sum.loaded, sum.stored})
    CHECK(n > 20); // the run was worth it only if it reached all of these
}

TEST_CASE("the same seed gives the same trace") {
  for (const std::uint64_t seed : {3, 4, 5}) {
    CAPTURE(seed);
    totals sum;
    simulation a(seed), b(seed);
    a.run(sum);
    b.run(sum);
    CHECK(a.trace().size() > 1000);
    CHECK(a.trace() == b.trace());
  }
}
