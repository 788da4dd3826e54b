// bench_decode MODEL [threads] [repeats]: tokens per second through the backend's own interface, with paged KV and the sampler.
//
// pp512, pp128: a prompt from position 0, one token chosen after it. tg128: 128 tokens one by one from position 0; tg128x4,
// tg128x8: 4 and 8 sequences at once, all their tokens counted. Prints the median of `repeats`. bench/compare_llama.py runs it
// beside llama-bench, whose pp512 and tg128 mean the same.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "config/limits.hpp"
#include "cpu/cpu_backend.hpp"
#include "model/model_file.hpp"

using namespace troupe;

namespace {

constexpr int prompt_tokens = 512;
constexpr int decode_tokens = 128;
constexpr int batch_max = 8;

class bench {
public:
  explicit bench(backend& device) : device_(device), vocabulary_(static_cast<std::uint64_t>(device.shape().vocabulary)) {
    sampling_params greedy;
    greedy.temperature = 0;
    greedy_ = std::make_shared<const sampling_params>(greedy);
    const int pages_each = prompt_tokens / limits::page_tokens;
    for (int s = 0; s < batch_max; ++s) {
      auto table = std::make_shared<page_table>();
      for (int p = 0; p < pages_each; ++p)
        table->push_back(static_cast<page_id>(s * pages_each + p));
      pages_.push_back(std::move(table));
    }
  }

  // Seconds inside the backend.
  double prefill(int tokens) { return step({sequence(0, 0, tokens)}); }
  double decode(int batch, int tokens) {
    double seconds = 0;
    for (int t = 0; t < tokens; ++t) {
      std::vector<sequence_step> sequences;
      for (int s = 0; s < batch; ++s)
        sequences.push_back(sequence(s, t, 1));
      seconds += step(std::move(sequences));
    }
    return seconds;
  }

private:
  sequence_step sequence(int index, int position, int tokens) {
    sequence_step s;
    s.id.number = static_cast<std::uint64_t>(index);
    s.position = position;
    s.pages = pages_[static_cast<std::size_t>(index)];
    s.sample = true;
    s.sampling = greedy_;
    for (int t = 0; t < tokens; ++t)
      s.tokens.push_back(static_cast<token_id>(random_at(11, drawn_++) % vocabulary_));
    return s;
  }

  double step(std::vector<sequence_step> sequences) {
    step_plan plan;
    plan.sequences = std::move(sequences);
    const auto result = device_.run(plan);
    if (!result || result->sequences.front().fault) {
      std::cerr << "bench_decode: " << (result ? result->sequences.front().fault->message : result.fault().message) << "\n";
      std::exit(1);
    }
    return result->seconds;
  }

  backend& device_;
  std::uint64_t vocabulary_;
  std::uint64_t drawn_ = 0;
  std::shared_ptr<const sampling_params> greedy_;
  std::vector<std::shared_ptr<const page_table>> pages_;
};

template <class F>
void report(const char* name, int tokens, int repeats, F seconds) {
  std::vector<double> speeds;
  for (int i = 0; i < repeats; ++i)
    speeds.push_back(tokens / seconds());
  std::sort(speeds.begin(), speeds.end());
  std::printf("%-8s %9.2f tokens/s\n", name, speeds[speeds.size() / 2]);
  std::fflush(stdout);
}

} // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::cerr << "usage: bench_decode MODEL [threads] [repeats] [only these: pp512 pp128 tg128 tg128x4 tg128x8]\n";
    return 2;
  }
  const auto file = open_model(arguments[1]);
  if (!file) {
    std::cerr << "bench_decode: " << file.fault().message << "\n";
    return 1;
  }
  const int repeats = count > 3 ? std::max(1, std::atoi(arguments[3])) : 3;
  const std::vector<std::string> only(arguments + std::min(count, 4), arguments + count);
  const auto wanted = [&](const char* name) { return only.empty() || std::find(only.begin(), only.end(), name) != only.end(); };
  cpu_options options;
  options.threads = count > 2 ? std::atoi(arguments[2]) : 0;
  options.pages = batch_max * prompt_tokens / limits::page_tokens;
  options.step_tokens_max = prompt_tokens;
  if (const char* isa = std::getenv("TROUPE_ISA"))
    options.isa = isa;
  options.log = [](log_level, std::string_view line) { std::cerr << line << "\n"; };
  const auto device = make_cpu_backend(file->weights, options);
  if (!device) {
    std::cerr << "bench_decode: " << device.fault().message << "\n";
    return 1;
  }
  bench b(**device);
  b.prefill(64);
  b.decode(1, 4); // memory and clocks are warm from here on
  if (wanted("pp512"))
    report("pp512", 512, repeats, [&] { return b.prefill(512); });
  if (wanted("pp128"))
    report("pp128", 128, repeats, [&] { return b.prefill(128); });
  for (const auto& [name, batch] : {std::pair{"tg128", 1}, {"tg128x4", 4}, {"tg128x8", 8}})
    if (wanted(name))
      report(name, batch * decode_tokens, repeats, [&, n = batch] { return b.decode(n, decode_tokens); });
  return 0;
}
