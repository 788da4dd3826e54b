// Four times more sessions than the device holds take turns on the bundled model, on real threads.
//
// Hit: when the reservation comes, the device holds all that is known of the prompt; a page that is still on its way up is a
// miss. Hidden: of the time in which pages are copied, up or down, that in which a step runs or no request waits for a page
// (actors/metrics/copy_overlap.hpp). The share beside steps alone is shown, too; copies down between turns lie outside it.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <thread>

#include "actors/runtime.hpp"
#include "config/limits.hpp"
#include "cpu/cpu_backend.hpp"
#include "model/model_file.hpp"
#include "tests/support/collecting_sink.hpp"

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t sessions = 48;
constexpr int rounds = 4;
constexpr int learning_rounds = 2; // until each conversation's successor has been seen
constexpr int answer_tokens = 8;

std::filesystem::path model_folder() {
  const std::filesystem::path path = std::string(TROUPE_SOURCE_DIR) + "/models/tiny";
  return std::filesystem::exists(path / "model.safetensors") ? path : std::filesystem::path();
}

std::unique_ptr<runtime> start(std::uint32_t pages, const tier_parts& tiers) {
  auto file = open_model(model_folder()).value();
  auto tokens = tokenizer::build(std::move(file.tokenizer)).value();
  cpu_options device;
  device.threads = 1; // the turns are to wait for pages, not for a second core
  device.pages = pages;
  device.step_tokens_max = 256;
  device.usable_vocabulary = tokens->size();
  runtime_parts parts;
  parts.tokens = std::move(tokens);
  parts.model = {"tiny", 512, "", 0};
  parts.end_tokens = file.end_tokens;
  parts.device = make_cpu_backend(std::move(file.weights), device).value();
  parts.tiers = tiers;
  parts.fault_injection = true;
  return runtime::start(std::move(parts)).value();
}

struct turn_seen {
  std::string text;
  token_usage usage;
};

class players {
public:
  explicit players(runtime& company) : company_(company) {
    for (std::size_t i = 0; i < sessions; ++i) {
      texts_.push_back("Session " + std::to_string(i * 7919) + ".");
      for (std::size_t line = 0; line < 12; ++line)
        texts_.back() += " My order " + std::to_string(i * 31 + line * 17) + " has not come.";
    }
  }

  // Each session's next turn, `at_once` of them in flight.
  std::vector<turn_seen> round(std::size_t at_once) {
    std::vector<turn_seen> out;
    for (std::size_t i = 0; i < sessions; i += at_once) {
      std::vector<std::shared_ptr<collecting_sink>> sinks;
      for (std::size_t j = i; j < i + at_once; ++j)
        sinks.push_back(ask(j));
      for (std::size_t j = 0; j < at_once; ++j) {
        REQUIRE(sinks[j]->wait_end());
        REQUIRE(sinks[j]->finished());
        out.push_back({sinks[j]->text(), sinks[j]->finished()->usage});
        texts_[i + j] += out.back().text;
      }
    }
    ++turn_;
    return out;
  }

private:
  std::shared_ptr<collecting_sink> ask(std::size_t i) {
    texts_[i] += " And what about " + std::to_string(i + static_cast<std::size_t>(turn_) * 100) + "?";
    generation_request request;
    request.prompt = texts_[i];
    request.max_tokens = answer_tokens;
    request.ignore_eos = true;
    request.sampling.temperature = 1.0f;
    request.sampling.seed = 100 + i;
    auto sink = std::make_shared<collecting_sink>();
    static_cast<void>(company_.port().submit(std::move(request), sink).value());
    return sink;
  }

  runtime& company_;
  std::vector<std::string> texts_;
  int turn_ = 0;
};

double metric(runtime& company, const std::string& name) {
  const auto text = company.port().metrics_text();
  const auto at = text.find("\n" + name + " ");
  REQUIRE(at != std::string::npos);
  return std::strtod(text.c_str() + at + name.size() + 2, nullptr);
}

struct played {
  std::vector<turn_seen> turns;
  std::size_t tokens = 0; // of all sessions at the end
};

played play(runtime& company, std::size_t at_once, const std::function<void(int)>& before_round = nullptr) {
  played out;
  players all(company);
  for (int round = 0; round < rounds; ++round) {
    if (before_round)
      before_round(round);
    for (auto& turn : all.round(at_once))
      out.turns.push_back(std::move(turn));
  }
  for (std::size_t i = out.turns.size() - sessions; i < out.turns.size(); ++i)
    out.tokens += static_cast<std::size_t>(out.turns[i].usage.prompt_tokens + out.turns[i].usage.completion_tokens);
  return out;
}

void check_same(const played& a, const played& expected) {
  REQUIRE(a.turns.size() == expected.turns.size());
  for (std::size_t i = 0; i < a.turns.size(); ++i) {
    CAPTURE(i / sessions);
    CAPTURE(i % sessions);
    CHECK(a.turns[i].text == expected.turns[i].text);
    CHECK(a.turns[i].usage.prompt_tokens == expected.turns[i].usage.prompt_tokens);
    if (i >= sessions) // before that it is chance which sessions' first words are there to be shared
      CHECK(a.turns[i].usage.cached_tokens == expected.turns[i].usage.cached_tokens);
  }
}

} // namespace

TEST_CASE("four times more sessions than the device holds: no prefill twice, the same tokens, pages there before they are "
          "asked for, copies hidden") {
  if (model_folder().empty()) {
    MESSAGE("skipped: models/tiny has no model");
    return;
  }
  played expected;
  {
    auto roomy = start(4096, {});
    expected = play(*roomy, 1);
  }
  const auto pages_in_all = (expected.tokens + limits::page_tokens - 1) / limits::page_tokens;
  const auto device_pages = static_cast<std::uint32_t>(pages_in_all / 4);
  for (std::size_t i = sessions; i < expected.turns.size(); ++i) // the device that holds all: all but the new is reused
    REQUIRE(expected.turns[i].usage.prompt_tokens - expected.turns[i].usage.cached_tokens < 40);

  struct setup {
    std::uint64_t host_mib, disk_mib;
    std::size_t at_once;
    int ahead;
  };
  for (const auto& [host_mib, disk_mib, at_once, ahead] : {setup{0, 64, 1, 2}, {64, 0, 1, 2}, {0, 64, 2, 4}, {0, 64, 1, 0}}) {
    CAPTURE(host_mib);
    CAPTURE(disk_mib);
    CAPTURE(at_once);
    CAPTURE(ahead);
    tier_parts tiers;
    tiers.host_bytes = host_mib << 20;
    tiers.disk_bytes = disk_mib << 20;
    tiers.prefetch_ahead = ahead;
    auto company = start(device_pages, tiers);
    double lookups = 0, misses = 0;
    const auto seen = play(*company, at_once, [&](int round) {
      if (round != learning_rounds)
        return;
      lookups = metric(*company, "troupe_tier_lookups_total");
      misses = metric(*company, "troupe_tier_misses_total");
    });
    check_same(seen, expected);
    lookups = metric(*company, "troupe_tier_lookups_total") - lookups;
    misses = metric(*company, "troupe_tier_misses_total") - misses;
    const double hit_rate = 1 - misses / lookups;
    const double copying = metric(*company, "troupe_tier_copy_seconds_total");
    const double hidden = metric(*company, "troupe_tier_copy_hidden_seconds_total");
    const double beside = metric(*company, "troupe_tier_copy_beside_steps_seconds_total");
    MESSAGE(sessions << " sessions of " << pages_in_all / sessions << " pages on " << device_pages << " pages: hit rate "
                     << hit_rate << " of " << lookups << " turns, " << 1000 * copying << " ms of copies, hidden "
                     << hidden / copying << ", beside steps " << beside / copying);
    CHECK(lookups == sessions * (rounds - learning_rounds));
    if (ahead > 0) {
      CHECK(hit_rate >= 0.95);
      CHECK(hidden / copying >= 0.8);
      CHECK(metric(*company, "troupe_tier_pages_prefetched_total") > 100);
    } else { // what prefetching is worth: every turn waits, and still nothing is computed twice
      CHECK(hit_rate < 0.1);
      CHECK(metric(*company, "troupe_tier_pages_prefetched_total") == 0);
    }
    CHECK(metric(*company, "troupe_tier_device_evictions_total{below=\"no\"}") == 0);
    CHECK(metric(*company, "troupe_tier_moves_failed_total{reason=\"damaged\"}") == 0);
    CHECK(company->drain(5s));
  }
}
