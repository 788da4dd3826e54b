// bench_eviction MODEL [threads] [rounds] [contexts ...]: what eviction costs in time.
//
// Per context: a prefill part of 128 tokens behind it, with no score, with the most and with the sum of attention, in turn;
// then a whole eviction as the batcher does it (everything read again in chunks, the half that is needed most moved to other
// pages) beside computing the same tokens in parts of 128. Tokens are random. Medians of `rounds`; ratios are of one round. All
// in seconds of processor time, which other work on the machine disturbs less: for one thread, they are the time it takes.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <numeric>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "config/limits.hpp"
#include "cpu/cpu_backend.hpp"
#include "memory/token_eviction.hpp"
#include "model/model_file.hpp"

using namespace troupe;

namespace {

constexpr int part_tokens = reading_rows_max;

[[noreturn]] void give_up(const std::string& why) {
  std::cerr << "bench_eviction: " << why << "\n";
  std::exit(1);
}

double median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

std::vector<double> over(const std::vector<double>& times, const std::vector<double>& base) {
  std::vector<double> out;
  for (std::size_t i = 0; i < times.size(); ++i)
    out.push_back(times[i] / base[i]);
  return out;
}

class bench {
public:
  bench(backend& device, int context) : device_(device), context_(context) {
    const auto vocabulary = static_cast<std::uint64_t>(device.shape().vocabulary);
    for (int i = 0; i < context + part_tokens; ++i)
      tokens_.push_back(static_cast<token_id>(random_at(13, static_cast<std::uint64_t>(i)) % vocabulary));
    pages_ = table(0);
    others_ = table(1);
  }

  static int pages_each(int context) { return (context + part_tokens) / limits::page_tokens + 1; }

  double compute() {
    double seconds = 0;
    for (int at = 0; at < context_; at += part_tokens)
      seconds += run(step(at, std::min(context_, at + part_tokens), at, attention_score::none)).seconds;
    return seconds;
  }

  // One part behind the context.
  double part(attention_score score) { return run(step(context_, context_ + part_tokens, context_, score)).seconds; }

  struct eviction {
    double reading = 0, moving = 0;
  };
  eviction evict() {
    eviction out;
    std::vector<float> scores(static_cast<std::size_t>(context_));
    for (int at = 0; at < context_;) {
      const auto chunk = read_again_from(at, context_, reading_rows_max);
      const auto done = run(step(chunk.lead, chunk.end, context_, attention_score::peak));
      for (std::size_t i = 0; i < scores.size(); ++i)
        scores[i] = std::max(scores[i], done.sequences.front().scores[i]);
      out.reading += done.seconds;
      at = chunk.end;
    }
    step_plan plan;
    plan.compactions.push_back({{}, pages_, others_, choose_kept(scores, context_ / 2)});
    out.moving = run(std::move(plan)).seconds;
    return out;
  }

private:
  std::shared_ptr<const page_table> table(int index) const {
    auto out = std::make_shared<page_table>(static_cast<std::size_t>(pages_each(context_)));
    std::iota(out->begin(), out->end(), static_cast<page_id>(index * pages_each(context_)));
    return out;
  }

  step_plan step(int begin, int end, int position, attention_score score) const {
    step_plan plan;
    auto& s = plan.sequences.emplace_back();
    s.tokens.assign(tokens_.begin() + begin, tokens_.begin() + end);
    s.position = position;
    s.pages = pages_;
    s.scores = score;
    return plan;
  }

  step_result run(step_plan plan) {
    const auto start = std::clock();
    auto done = device_.run(plan);
    const auto end = std::clock();
    if (!done || (!done->sequences.empty() && done->sequences.front().fault))
      give_up(done ? done->sequences.front().fault->message : done.fault().message);
    done->seconds = static_cast<double>(end - start) / CLOCKS_PER_SEC;
    return std::move(*done);
  }

  backend& device_;
  int context_;
  std::vector<token_id> tokens_;
  std::shared_ptr<const page_table> pages_, others_;
};

void measure(backend& device, int context, int rounds) {
  bench b(device, context);
  std::vector<double> computing, none, peak, mass, reading, moving, whole;
  for (int round = 0; round < rounds; ++round) {
    computing.push_back(b.compute());
    const auto evicted = b.evict();
    reading.push_back(evicted.reading);
    moving.push_back(evicted.moving);
    whole.push_back(evicted.reading + evicted.moving);
  }
  for (int round = 0; round < 5 * rounds; ++round) {
    none.push_back(b.part(attention_score::none));
    peak.push_back(b.part(attention_score::peak));
    mass.push_back(b.part(attention_score::mass));
  }
  std::printf("| %d | %.3f | %.3f | %.3f | %.2f | %.2f | %.3f | %.2f |\n", context, median(none), median(over(peak, none)),
              median(over(mass, none)), median(computing), median(reading), median(moving), median(over(whole, computing)));
  std::fflush(stdout);
}

} // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::cerr << "usage: bench_eviction MODEL [threads] [rounds] [contexts ...]\n";
    return 2;
  }
  const auto file = open_model(arguments[1]);
  if (!file)
    give_up(file.fault().message);
  const int rounds = count > 3 ? std::max(1, std::atoi(arguments[3])) : 3;
  std::vector<int> contexts;
  for (int i = 4; i < count; ++i)
    contexts.push_back(std::max(part_tokens, std::atoi(arguments[i])));
  if (contexts.empty())
    contexts = {1000, 4000};
  cpu_options options;
  options.threads = count > 2 ? std::atoi(arguments[2]) : 1;
  options.pages = static_cast<std::uint32_t>(2 * bench::pages_each(*std::max_element(contexts.begin(), contexts.end())));
  options.step_tokens_max = part_tokens;
  options.log = [](log_level, std::string_view line) { std::cerr << line << "\n"; };
  const auto device = make_cpu_backend(file->weights, options);
  if (!device)
    give_up(device.fault().message);
  std::printf("%s, %d rounds\n\n", (*device)->shape().description.c_str(), rounds);
  std::printf(
      "| context | part, s | with the most | with the sum | computing all, s | reading again, s | moving, s | eviction |\n"
      "|---|---|---|---|---|---|---|---|\n");
  for (const int context : contexts)
    measure(**device, context, rounds);
  return 0;
}
