// What it costs to go from one live session to the next: 100 sessions, their pages in one shard, through the batcher's own
// decisions and the shard's own memory, with a backend that does nothing.
//
// "switch": one more session's part in a step, from its lookup by id to its plan with its page table, its result and its token.
// "lookup": a lease's pages found by its name in the shard. "resume": a session that was released comes back with its whole
// prefix found. Bytes copied are counted from the plans.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <vector>

#include "actors/batcher/batch_schedule.hpp"
#include "memory/kv_shard_memory.hpp"

using namespace troupe;

namespace {

constexpr int sessions = 100;
constexpr int prompt_tokens = 1024;
constexpr int rounds = 500;
constexpr std::uint32_t pages = 16'384;

using clock_type = std::chrono::steady_clock;

double microseconds(clock_type::duration d) { return std::chrono::duration<double, std::micro>(d).count(); }

// Answers the schedule's messages; counts what plans copy.
class house {
public:
  house() : memory_({.pages = pages}), schedule_(config()) {
    act(schedule_.compute_ready());
    act(schedule_.shard_ready(0, memory_.report()));
  }

  void submit(std::uint64_t number) {
    batch_request r;
    r.id = {number, 0};
    std::vector<token_id> tokens(static_cast<std::size_t>(prompt_tokens));
    for (std::size_t i = 0; i < tokens.size(); ++i)
      tokens[i] = static_cast<token_id>(number * 131 + i);
    r.tokens = std::make_shared<const std::vector<token_id>>(std::move(tokens));
    r.prompt_length = prompt_tokens;
    r.max_new_tokens = 100'000;
    r.context_tokens = 1'000'000;
    r.sampling = std::make_shared<const sampling_params>();
    act(schedule_.submit(std::move(r), {}));
  }

  // The step in flight ends and the next is planned; the answer is how many sequences the next one has.
  std::size_t turn() {
    const auto plan = std::exchange(plan_, nullptr);
    step_result done;
    done.number = plan->number;
    done.sequences.reserve(plan->sequences.size());
    for (const auto& part : plan->sequences)
      done.sequences.push_back({part.id, part.sample ? std::optional(sampled_token{1, 0, {}}) : std::nullopt, {}, {}});
    act(schedule_.step_done(done));
    return plan_->sequences.size();
  }

  kv_shard_memory& memory() { return memory_; }
  std::uint64_t copies() const { return copies_; }

private:
  static batch_schedule_config config() {
    batch_schedule_config c;
    c.shard_pages = {pages};
    c.running_max = 128;
    c.waiting_max = 128;
    c.step_tokens = 4096;
    return c;
  }

  void act(batch_actions actions) {
    std::deque<batch_action> todo(std::make_move_iterator(actions.begin()), std::make_move_iterator(actions.end()));
    while (!todo.empty()) {
      const auto action = std::move(todo.front());
      todo.pop_front();
      batch_actions more;
      const auto answer = [&](auto either) {
        more = std::visit([this](const auto& a) { return schedule_.answered(a); }, either);
      };
      if (const auto* reserve = std::get_if<reserve_pages>(&action))
        answer(memory_.reserve(*reserve));
      else if (const auto* grow = std::get_if<grow_pages>(&action))
        answer(memory_.grow(*grow));
      else if (const auto* publish = std::get_if<publish_pages>(&action))
        memory_.publish(*publish);
      else if (const auto* release = std::get_if<release_pages>(&action))
        more = schedule_.answered(memory_.release(*release));
      else if (const auto* run = std::get_if<run_step>(&action)) {
        plan_ = run->plan;
        copies_ += plan_->copies.size();
      }
      todo.insert(todo.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
    }
  }

  kv_shard_memory memory_;
  batch_schedule schedule_;
  std::shared_ptr<const step_plan> plan_;
  std::uint64_t copies_ = 0;
};

} // namespace

int main() {
  house h;
  for (std::uint64_t n = 1; n <= sessions; ++n)
    h.submit(n);
  while (h.turn() < sessions || h.memory().stats().reservations < sessions) {
  }
  for (int i = 0; i < 100; ++i)
    h.turn();
  const auto before = h.copies();
  std::vector<double> switches;
  for (int i = 0; i < rounds; ++i) {
    const auto begin = clock_type::now();
    const auto n = h.turn();
    switches.push_back(microseconds(clock_type::now() - begin) / static_cast<double>(n));
  }
  std::sort(switches.begin(), switches.end());

  const auto begin = clock_type::now();
  for (int i = 0; i < rounds; ++i)
    for (lease_id lease = 1; lease <= sessions; ++lease)
      static_cast<void>(h.memory().grow({0, lease, {lease, 0}, 1, 1}));
  const double lookup = microseconds(clock_type::now() - begin) / (rounds * sessions);

  kv_shard_memory idle({.pages = pages});
  double resume = 0;
  for (const bool warm : {false, true})
    for (lease_id n = 1; n <= sessions; ++n) {
      auto tokens = std::make_shared<std::vector<token_id>>(static_cast<std::size_t>(prompt_tokens + 1));
      for (std::size_t i = 0; i < tokens->size(); ++i)
        (*tokens)[i] = static_cast<token_id>(n * 131 + i);
      const auto start = clock_type::now();
      const auto lease = n + (warm ? 1000 : 0);
      const auto got = std::get<pages_reserved>(idle.reserve({0, lease, {n, 0}, tokens, 7, prompt_tokens + 1, 0, false}));
      resume += warm ? microseconds(clock_type::now() - start) / sessions : 0;
      idle.release({0, lease, {n, 0}, got.shared_tokens, {tokens->begin() + got.shared_tokens, tokens->end()}});
    }

  const auto stats = h.memory().stats();
  std::printf("%d live sessions of %d tokens, %u pages used\n", sessions, prompt_tokens, stats.used);
  std::printf("switch  %6.3f us median, %6.3f us p99, a session of a step; %llu bytes of KV copied in %d switches\n",
              switches[switches.size() / 2], switches[switches.size() * 99 / 100],
              static_cast<unsigned long long>(h.copies() - before), rounds * sessions);
  std::printf("lookup  %6.3f us by lease in the shard\n", lookup);
  std::printf("resume  %6.3f us for %d tokens found again (hashing included)\n", resume, prompt_tokens);
  std::printf("pages granted %llu in %llu runs: %.3f contiguous\n", static_cast<unsigned long long>(stats.granted_pages),
              static_cast<unsigned long long>(stats.granted_runs),
              1.0 - static_cast<double>(stats.granted_runs) / static_cast<double>(stats.granted_pages));
}
