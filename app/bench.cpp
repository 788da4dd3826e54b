#include "app/bench_figures.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <thread>

#include "app/child_server.hpp"
#include "app/commands.hpp"
#include "app/http.hpp"
#include "base/random.hpp"
#include "io/wire/chat_client.hpp"

namespace troupe {
namespace {

using clock_type = std::chrono::steady_clock;

double seconds_since(clock_type::time_point start) {
  return std::chrono::duration<double>(clock_type::now() - start).count();
}

// Plain English of a wanted length, different for each (seed, index), so that only what a real chat would share is shared.
std::string make_prompt(int words, std::uint64_t seed, std::uint64_t index) {
  static constexpr const char* vocabulary[] = {
      "order", "refund", "where", "please", "tell", "my", "parcel", "the", "address", "when", "is", "arrive", "change",
      "number", "today", "help", "with", "account", "price", "of", "a", "blue", "jacket", "delivery", "time", "and", "how",
      "long", "does", "it", "take", "to", "return", "an", "item", "that", "was", "broken"};
  constexpr std::uint64_t size = std::size(vocabulary);
  std::string text;
  for (int i = 0; i < words; ++i) {
    text += i ? " " : "";
    text += vocabulary[random_at(seed * 1'000'003 + index, static_cast<std::uint64_t>(i)) % size];
  }
  return text + "?";
}

bench_sample run_one(const bench_options& options, const std::string& url, const std::string& model, std::uint64_t index) {
  bench_sample sample;
  chat_client_options body_options;
  body_options.model = model;
  body_options.max_tokens = options.max_tokens;
  body_options.temperature = 0;
  body_options.ignore_eos = true;
  const std::string body = chat_request_body(
      {{"user", make_prompt(options.prompt_tokens, static_cast<std::uint64_t>(options.seed), index), {}, {}, {}}}, body_options);
  const auto start = clock_type::now();
  auto last = start;
  bool done = false;
  sse_reader reader;
  const auto answer = http_call(url + "/v1/chat/completions", body, options.key, [&](std::string_view bytes) {
    return reader.feed(bytes, [&](std::string_view data) {
      const auto chunk = parse_chat_chunk(data);
      if (!chunk) {
        sample.error = chunk.fault().message;
        return;
      }
      if (!chunk->error.empty())
        sample.error = chunk->error;
      done = done || chunk->done;
      if (chunk->completion_tokens >= 0)
        sample.completion_tokens = chunk->completion_tokens;
      if (chunk->prompt_tokens >= 0)
        sample.prompt_tokens = chunk->prompt_tokens;
      if (chunk->content.empty() && chunk->reasoning.empty())
        return;
      const auto now = clock_type::now();
      if (sample.first_token_s == 0)
        sample.first_token_s = std::chrono::duration<double>(now - start).count();
      else
        sample.gaps_s.push_back(std::chrono::duration<double>(now - last).count());
      last = now;
    });
  });
  sample.total_s = seconds_since(start);
  if (!answer)
    sample.error = answer.fault().message;
  else if (answer->status != 200)
    sample.error = "HTTP " + std::to_string(answer->status) + ": " + answer->body.substr(0, 200);
  else if (sample.error.empty() && !done)
    sample.error = "the stream ended without [DONE]";
  return sample;
}

} // namespace

int bench_command(const settings& s, const bench_options& options, const std::string& program) {
  child_server child;
  std::string url = base_url(options.url);
  if (url.empty()) {
    auto started = child_server::start(program, s);
    if (!started) {
      std::fprintf(stderr, "troupe bench: %s\n", started.fault().message.c_str());
      return 1;
    }
    child = std::move(*started);
    url = child.url();
  }
  std::vector<bench_sample> samples(static_cast<std::size_t>(options.requests));
  std::atomic<int> next{0};
  std::atomic<int> finished{0};
  std::mutex terminal;
  const auto start = clock_type::now();
  std::vector<std::thread> clients;
  for (int c = 0; c < std::min(options.concurrency, options.requests); ++c)
    clients.emplace_back([&] {
      for (int i; (i = next.fetch_add(1)) < options.requests;) {
        samples[static_cast<std::size_t>(i)] = run_one(options, url, "", static_cast<std::uint64_t>(i));
        const int done = finished.fetch_add(1) + 1;
        const std::lock_guard lock(terminal);
        std::fprintf(stderr, "\r%d/%d requests", done, options.requests);
      }
    });
  for (auto& client : clients)
    client.join();
  std::fprintf(stderr, "\n");
  const auto f = figures_of(samples, seconds_since(start));
  if (f.errors == f.requests) {
    std::fprintf(stderr, "troupe bench: every request failed; the first: %s\n", samples.front().error.c_str());
    return 1;
  }
  std::printf("%d requests, %d at once, about %d prompt words, %d tokens each, seed %d\n", f.requests, options.concurrency,
              options.prompt_tokens, options.max_tokens, options.seed);
  std::printf("%-24s %12s %12s\n", "", "p50", "p95");
  std::printf("%-24s %9.1f ms %9.1f ms\n", "time to first token", f.first_p50_s * 1e3, f.first_p95_s * 1e3);
  std::printf("%-24s %9.1f ms %9.1f ms\n", "between tokens", f.gap_p50_s * 1e3, f.gap_p95_s * 1e3);
  std::printf("%-24s %9.1f ms %9.1f ms\n", "end to end", f.total_p50_s * 1e3, f.total_p95_s * 1e3);
  std::printf("%-24s %9.1f tokens/s generated, %.1f with prompts\n", "throughput", static_cast<double>(f.generated_tokens) / f.wall_s,
              static_cast<double>(f.generated_tokens + f.prompt_tokens) / f.wall_s);
  for (const auto& sample : samples)
    if (!sample.error.empty()) {
      std::printf("%d of %d failed; the first: %s\n", f.errors, f.requests, sample.error.c_str());
      break;
    }
  if (!options.json.empty()) {
    std::ofstream out(options.json);
    out << "{\"requests\":" << f.requests << ",\"concurrency\":" << options.concurrency << ",\"errors\":" << f.errors
        << ",\"wall_s\":" << f.wall_s << ",\"first_p50_s\":" << f.first_p50_s << ",\"first_p95_s\":" << f.first_p95_s
        << ",\"gap_p50_s\":" << f.gap_p50_s << ",\"gap_p95_s\":" << f.gap_p95_s << ",\"total_p50_s\":" << f.total_p50_s
        << ",\"total_p95_s\":" << f.total_p95_s << ",\"generated_tokens\":" << f.generated_tokens
        << ",\"prompt_tokens\":" << f.prompt_tokens << "}\n";
    out.close();
    if (!out) {
      std::fprintf(stderr, "troupe bench: cannot write %s\n", options.json.c_str());
      return 1;
    }
  }
  return f.errors == 0 ? 0 : 1;
}

} // namespace troupe
