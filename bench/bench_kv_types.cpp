// bench_kv_types MODEL TEXT [tokens] [window] [threads] [KEYS/VALUES ...]: what keeping keys and values in fewer bits costs in
// quality: the change of the mean log-likelihood that the model gives to TEXT's tokens, against f16.
//
// Teacher-forced through the CPU backend: the text is cut into windows, each begins with an empty context, and every token but
// a window's first is scored. Within a step each token is a sequence of its own on its window's pages, which gives the logits
// after all of them; results don't depend on that cut.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "config/limits.hpp"
#include "cpu/cpu_backend.hpp"
#include "model/model_file.hpp"
#include "model/tokenizer.hpp"

using namespace troupe;

namespace {

constexpr int step_tokens = 256;

struct score {
  double mean = 0;              // of log-likelihoods, natural
  std::vector<double> each;     // token by token
  std::vector<token_id> greedy; // the likeliest token at each place
  std::size_t page_bytes = 0;
  std::string device; // kernels that fail their self-test are replaced, and then these are not the figures that were meant
};

[[noreturn]] void give_up(const std::string& why) {
  std::cerr << "bench_kv_types: " << why << "\n";
  std::exit(1);
}

class scorer {
public:
  scorer(const model_file& file, int vocabulary, std::vector<token_id> tokens, int window, int threads)
      : file_(file), tokens_(std::move(tokens)), window_(window), threads_(threads) {
    usable_ = vocabulary;
    auto table = std::make_shared<page_table>();
    for (int p = 0; p < (window + limits::page_tokens - 1) / limits::page_tokens; ++p)
      table->push_back(static_cast<page_id>(p));
    pages_ = std::move(table);
    sampling_params greedy;
    greedy.temperature = 0;
    sampling_ = std::make_shared<const sampling_params>(greedy);
  }

  score run(kv_types types) {
    score out;
    cpu_options options;
    options.kv = types;
    options.threads = threads_;
    options.pages = static_cast<std::uint32_t>(pages_->size());
    options.step_tokens_max = step_tokens;
    options.usable_vocabulary = usable_;
    options.log = [](log_level level, std::string_view line) {
      if (level >= log_level::warning)
        std::cerr << line << "\n";
    };
    // Called by one thread at a time, in the plan's order.
    options.on_logits = [&](const request_id& id, std::span<const float> logits) { take(out, id.number, logits); };
    const auto device = make_cpu_backend(file_.weights, options);
    if (!device)
      give_up(device.fault().message);
    out.page_bytes = (*device)->shape().page_bytes;
    out.device = (*device)->shape().description;
    for (std::size_t at = 0; at < tokens_.size(); at += static_cast<std::size_t>(window_))
      score_window(**device, at, std::min(tokens_.size(), at + static_cast<std::size_t>(window_)));
    for (const double l : out.each)
      out.mean += l / static_cast<double>(out.each.size());
    return out;
  }

private:
  void score_window(backend& device, std::size_t begin, std::size_t end) {
    for (std::size_t at = begin; at < end; at += step_tokens) {
      step_plan plan;
      for (std::size_t i = at; i < std::min(end, at + step_tokens); ++i) {
        sequence_step s;
        s.id.number = i;
        s.tokens = {tokens_[i]};
        s.position = static_cast<std::int32_t>(i - begin);
        s.pages = pages_;
        s.sample = i + 1 < end;
        s.sampling = sampling_;
        plan.sequences.push_back(std::move(s));
      }
      const auto done = device.run(plan);
      if (!done)
        give_up(done.fault().message);
      for (const auto& s : done->sequences)
        if (s.fault)
          give_up(s.fault->message);
    }
  }

  void take(score& out, std::uint64_t at, std::span<const float> logits) const {
    const auto usable = logits.first(static_cast<std::size_t>(usable_));
    const auto highest = std::max_element(usable.begin(), usable.end());
    double total = 0;
    for (const float l : usable)
      total += std::exp(static_cast<double>(l - *highest));
    const auto next = static_cast<std::size_t>(tokens_[static_cast<std::size_t>(at) + 1]);
    out.each.push_back(static_cast<double>(usable[next] - *highest) - std::log(total));
    out.greedy.push_back(static_cast<token_id>(highest - usable.begin()));
  }

  const model_file& file_;
  int usable_ = 0;
  std::vector<token_id> tokens_;
  int window_, threads_;
  std::shared_ptr<const page_table> pages_;
  std::shared_ptr<const sampling_params> sampling_;
};

void print(kv_types types, const score& s, const score& f16) {
  double square = 0, same = 0;
  for (std::size_t i = 0; i < s.each.size(); ++i) {
    square += std::pow(s.each[i] - f16.each[i], 2);
    same += s.greedy[i] == f16.greedy[i];
  }
  const auto count = static_cast<double>(s.each.size());
  std::printf("| %-4s | %-4s | %5.1f | %9.5f | %+8.3f%% | %6.4f | %6.2f%% |\n", name_of(types.keys).data(),
              name_of(types.values).data(), 100.0 * static_cast<double>(s.page_bytes) / static_cast<double>(f16.page_bytes),
              s.mean, 100 * (s.mean - f16.mean) / std::abs(f16.mean), std::sqrt(square / count), 100 * same / count);
  std::fflush(stdout);
}

std::vector<kv_types> wanted_types(int count, char** arguments) {
  std::vector<kv_types> out;
  for (int i = 6; i < count; ++i) {
    const std::string pair = arguments[i];
    const auto slash = std::min(pair.find('/'), pair.size());
    const auto keys = kv_type_named(pair.substr(0, slash)),
               values = kv_type_named(pair.substr(std::min(slash + 1, pair.size())));
    if (!keys || !values)
      give_up("'" + pair + "' is no KEYS/VALUES");
    out.push_back({*keys, *values});
  }
  if (out.empty())
    for (const kv_type t : {kv_type::bf16, kv_type::int8, kv_type::int4}) {
      out.push_back({t, t});
      out.push_back({t, kv_type::f16});
      out.push_back({kv_type::f16, t});
    }
  return out;
}

} // namespace

int main(int count, char** arguments) {
  if (count < 3) {
    std::cerr << "usage: bench_kv_types MODEL TEXT [tokens] [window] [threads] [KEYS/VALUES ...]\n";
    return 2;
  }
  auto file = open_model(arguments[1]);
  if (!file)
    give_up(file.fault().message);
  const auto tokens = tokenizer::build(std::move(file->tokenizer));
  if (!tokens)
    give_up(tokens.fault().message);
  std::ifstream in(arguments[2]);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  auto ids = (*tokens)->encode(text);
  const auto most = static_cast<std::size_t>(count > 3 ? std::max(2, std::atoi(arguments[3])) : 20'480);
  ids.resize(std::min(ids.size(), most));
  const int window = std::clamp(count > 4 ? std::atoi(arguments[4]) : 1024, 2, file->weights.shape.context_tokens);
  scorer s(*file, std::min((*tokens)->size(), file->weights.shape.vocabulary), std::move(ids), window,
           count > 5 ? std::atoi(arguments[5]) : 0);
  const auto f16 = s.run({});
  std::printf("%zu tokens scored in windows of %d on %s\n\n", f16.each.size(), window, f16.device.c_str());
  std::printf("| keys | values | size, %% of f16 | mean log-likelihood | change | rms change a token | same likeliest token |\n"
              "|---|---|---|---|---|---|---|\n");
  print({}, f16, f16);
  for (const auto types : wanted_types(count, arguments))
    print(types, s.run(types), f16);
  return 0;
}
