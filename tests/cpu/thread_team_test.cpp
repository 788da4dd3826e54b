#include "cpu/thread_team.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <condition_variable>
#include <ctime>
#include <mutex>
#include <set>
#include <stdexcept>
#include <vector>

using troupe::cpu::thread_team;
using troupe::cpu::usable_cores;

TEST_CASE("a team asked for no number of threads has one for each usable core") {
  CHECK(thread_team().size() == usable_cores());
  CHECK(usable_cores() >= 1);
}

TEST_CASE("every thread runs the function once, the caller as number 0") {
  for (int threads : {1, 2, 3, 5}) {
    thread_team team(threads);
    for (int round = 0; round < 50; ++round) {
      std::vector<std::atomic<int>> calls(static_cast<std::size_t>(threads));
      const auto caller = std::this_thread::get_id();
      std::atomic<bool> leads{false};
      team.run([&](int i) {
        ++calls[static_cast<std::size_t>(i)];
        if (i == 0)
          leads = std::this_thread::get_id() == caller;
      });
      CHECK(leads);
      for (const auto& c : calls)
        CHECK(c == 1);
    }
  }
}

TEST_CASE("what was written before a sync is seen after it, and the serial piece runs once between") {
  for (int threads : {1, 2, 4}) {
    thread_team team(threads);
    constexpr int phases = 2000;
    std::vector<int> written(static_cast<std::size_t>(threads), -1); // plain memory: a race here is the defect looked for
    int serial = 0;
    std::atomic<int> wrong{0};
    team.run([&](int i) {
      for (int phase = 0; phase < phases; ++phase) {
        written[static_cast<std::size_t>(i)] = phase;
        team.sync([&] {
          for (int w : written)
            wrong += w != phase;
          ++serial;
        });
        wrong += serial != phase + 1;
        team.sync();
      }
    });
    CHECK(wrong == 0);
    CHECK(serial == phases);
  }
}

TEST_CASE("shared units are each done once, in every phase") {
  thread_team team(3);
  constexpr int units = 1000;
  std::vector<std::atomic<int>> done(units);
  team.run([&](int) {
    for (int phase = 0; phase < 20; ++phase) {
      team.share(units, [&](int u) { ++done[static_cast<std::size_t>(u)]; });
      team.sync();
    }
  });
  for (const auto& d : done)
    CHECK(d == 20);
  std::atomic<int> total{0};
  team.for_each(77, [&](int u) { total += u; });
  CHECK(total == 77 * 76 / 2);
}

TEST_CASE("an exception of any thread reaches the caller, releases the others, and the team works on") {
  for (int thrower : {0, 1, 2}) {
    thread_team team(3);
    CHECK_THROWS_WITH(team.run([&](int i) {
      team.sync();
      if (i == thrower)
        throw std::runtime_error("spoilt");
      team.sync();
      team.sync();
    }),
                      "spoilt");
    CHECK_THROWS_WITH(team.run([&](int) {
      team.sync([] { throw std::runtime_error("spoilt between"); });
      team.sync();
    }),
                      "spoilt between");
    std::atomic<int> calls{0};
    team.run([&](int) {
      team.sync();
      ++calls;
    });
    CHECK(calls == 3);
  }
}

TEST_CASE("an idle team uses no processor time") {
  thread_team team(4);
  team.run([](int) {});
  const auto cpu_seconds = [] {
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
  };
  const auto wait_until = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  const double before = cpu_seconds();
  std::mutex m;
  std::unique_lock lock(m);
  std::condition_variable never;
  never.wait_until(lock, wait_until, [] { return false; });
  CHECK(cpu_seconds() - before < 0.02);
}
