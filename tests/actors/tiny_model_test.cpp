// The whole runtime on the bundled model: same seed, same tokens, whatever happens around it.
#include <doctest/doctest.h>

#include <filesystem>
#include <thread>

#include "actors/runtime.hpp"
#include "cpu/cpu_backend.hpp"
#include "model/model_file.hpp"
#include "tests/support/collecting_sink.hpp"

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

std::filesystem::path model_folder() {
  for (const auto* folder : {"/models/tiny", "/../shared/tiny-model/model"})
    if (const std::filesystem::path path = std::string(TROUPE_SOURCE_DIR) + folder;
        std::filesystem::exists(path / "model.safetensors"))
      return path;
  return {};
}

std::unique_ptr<runtime> start_tiny() {
  auto file = open_model(model_folder()).value();
  auto tokens = tokenizer::build(std::move(file.tokenizer)).value();
  cpu_options device;
  device.threads = 2;
  device.pages = 512;
  device.step_tokens_max = 256;
  device.usable_vocabulary = tokens->size();
  runtime_parts parts;
  parts.chat = chat_template::create(recognise_template(file.chat_template).value(), tokens).value();
  parts.tokens = std::move(tokens);
  parts.model = {"tiny", 512, "qwen3", 0};
  parts.end_tokens = file.end_tokens;
  parts.sampling.answer = file.sampling;
  parts.device = make_cpu_backend(std::move(file.weights), device).value();
  parts.fault_injection = true;
  return runtime::start(std::move(parts)).value();
}

std::shared_ptr<collecting_sink> ask(runtime& company, std::size_t i) {
  static const std::vector<std::string> questions{"Hello!",
                                                  "My order number is 48213. What is it?",
                                                  "\u4f60\u597d",
                                                  "What can you do?",
                                                  "I want to return a phone.",
                                                  "Where is my parcel?",
                                                  "My name is Alice.",
                                                  "Thank you, goodbye."};
  generation_request request;
  request.messages.push_back({"user", questions.at(i), "", {}, ""});
  request.max_tokens = 40;
  request.ignore_eos = true;
  request.enable_thinking = false;
  request.sampling.temperature = 1.0f;
  request.sampling.seed = 1000 + i;
  auto sink = std::make_shared<collecting_sink>();
  static_cast<void>(company.port().submit(std::move(request), sink).value());
  return sink;
}

} // namespace

TEST_CASE("on the bundled model the same seed gives the same tokens alone, in a batch of 8 and after deaths") {
  if (model_folder().empty()) {
    MESSAGE("skipped: neither models/tiny nor ../shared/tiny-model has a model");
    return;
  }
  auto company = start_tiny();
  std::vector<std::string> alone;
  for (std::size_t i = 0; i < 8; ++i) {
    const auto sink = ask(*company, i);
    REQUIRE(sink->wait_end());
    REQUIRE(sink->finished());
    CHECK(sink->finished()->usage.completion_tokens == 40);
    alone.push_back(sink->text());
  }
  CHECK(alone[0] != alone[1]);

  const auto together = [&](std::optional<actor_kind> victim) {
    std::vector<std::shared_ptr<collecting_sink>> sinks;
    for (std::size_t i = 0; i < 8; ++i)
      sinks.push_back(ask(*company, i));
    // Dies while tokens flow: after the first request has shown some.
    for (int looks = 0; victim && looks < 1'000'000 && sinks[0]->events().size() < 5; ++looks)
      std::this_thread::yield();
    if (victim)
      CHECK(company->kill(*victim, 0));
    for (std::size_t i = 0; i < 8; ++i) {
      CAPTURE(i);
      REQUIRE(sinks[i]->wait_end());
      CHECK(sinks[i]->ends() == 1);
      CHECK(sinks[i]->finished());
      CHECK(sinks[i]->text() == alone[i]);
    }
  };
  together(std::nullopt);
  for (const auto victim :
       {actor_kind::batcher, actor_kind::kv_shard, actor_kind::compute_stream, actor_kind::worker, actor_kind::metrics}) {
    CAPTURE(name_of(victim));
    together(victim);
  }
  // The last pages come back, and the last death is counted, shortly after the last end.
  const auto eventually_shows = [&](const std::string& line) {
    const auto deadline = std::chrono::steady_clock::now() + 30s;
    while (company->port().metrics_text().find(line) == std::string::npos)
      if (std::chrono::steady_clock::now() > deadline)
        return false;
      else
        std::this_thread::yield();
    return true;
  };
  for (const auto* actor : {"batcher", "kv_shard", "compute_stream", "worker", "metrics"})
    CHECK(eventually_shows("troupe_actor_restarts_total{actor=\"" + std::string(actor) + "\"} 1\n"));
  CHECK(eventually_shows("troupe_kv_pages{state=\"used\"} 0\n"));
  CHECK(company->drain(5s));
}

TEST_CASE("an answer goes on beyond its context with the same tokens, undisturbed and after deaths, and says what it dropped") {
  overflow_policy policy{};
  SUBCASE("in a window") { policy = overflow_policy::window; }
  SUBCASE("compressed") { policy = overflow_policy::compress; }
  if (model_folder().empty()) {
    MESSAGE("skipped: neither models/tiny nor ../shared/tiny-model has a model");
    return;
  }
  auto company = start_tiny();
  const auto ask_on = [&] {
    generation_request request;
    request.messages.push_back({"user", "What can you do?", "", {}, ""});
    request.max_tokens = 400;
    request.context_tokens = policy == overflow_policy::window ? 128 : 256; // 128 are held either way
    request.overflow = policy;
    request.ignore_eos = true;
    request.enable_thinking = false;
    request.sampling.temperature = 1.0f;
    request.sampling.seed = 77;
    auto sink = std::make_shared<collecting_sink>();
    static_cast<void>(company->port().submit(std::move(request), sink).value());
    return sink;
  };
  const auto undisturbed = ask_on();
  REQUIRE(undisturbed->wait_end());
  REQUIRE(undisturbed->finished());
  CHECK(undisturbed->finished()->reason == finish_reason::length);
  CHECK(undisturbed->finished()->usage.completion_tokens == 400);
  CHECK(undisturbed->finished()->usage.dropped_tokens > 250);
  for (const auto victim : {actor_kind::batcher, actor_kind::kv_shard, actor_kind::compute_stream}) {
    CAPTURE(name_of(victim));
    const auto again = ask_on();
    for (int looks = 0; looks < 10'000'000 && again->events().size() < 200; ++looks)
      std::this_thread::yield();
    CHECK(company->kill(victim, 0));
    REQUIRE(again->wait_end());
    CHECK(again->text() == undisturbed->text());
  }
  CHECK(company->drain(5s));
}
