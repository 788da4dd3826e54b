// The runtime with real threads: a fake device, and the bundled model on the CPU where its files are at hand.
#include <doctest/doctest.h>

#include <sys/resource.h>
#include <unistd.h>

#include <condition_variable>
#include <thread>

#include "actors/runtime.hpp"
#include "config/limits.hpp"
#include "tests/support/byte_tokenizer.hpp"
#include "tests/support/collecting_sink.hpp"
#include "tests/support/fake_backend.hpp"

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

// Lets a test hold a step inside the device.
class gate {
public:
  void close() {
    const std::lock_guard guard(lock_);
    open_ = false;
  }
  void open() {
    const std::lock_guard guard(lock_);
    open_ = true;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock guard(lock_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(guard, [this] { return open_; });
    --waiting_;
  }
  bool wait_for_visitor() {
    std::unique_lock guard(lock_);
    return changed_.wait_for(guard, 30s, [this] { return waiting_ > 0; });
  }

private:
  std::mutex lock_;
  std::condition_variable changed_;
  bool open_ = true;
  int waiting_ = 0;
};

struct house {
  std::shared_ptr<fake_device> device = std::make_shared<fake_device>();
  std::shared_ptr<gate> door = std::make_shared<gate>();
  std::unique_ptr<runtime> company;

  house() {
    device->before_step = [door = door](const step_plan&) { door->pass(); };
    runtime_parts parts;
    parts.device = std::make_unique<fake_backend>(device);
    parts.tokens = byte_tokenizer();
    parts.chat = chat_template::create(template_kind::qwen3, byte_tokenizer()).value();
    parts.model = {"fake", 256, "qwen3", 0};
    parts.end_tokens = {added::im_end};
    parts.running_max = 8;
    parts.waiting_max = 8;
    parts.fault_injection = true;
    parts.check_invariants = true;
    company = runtime::start(std::move(parts)).value();
  }

  std::shared_ptr<collecting_sink> ask(std::string prompt, int max_tokens, std::uint64_t seed = 1) {
    generation_request request;
    request.prompt = std::move(prompt);
    request.max_tokens = max_tokens;
    request.sampling.seed = seed;
    auto sink = std::make_shared<collecting_sink>();
    number = company->port().submit(std::move(request), sink).value();
    return sink;
  }
  std::uint64_t number = 0;
};

std::string answer_alone(int i) {
  house h;
  const auto sink = h.ask("question " + std::to_string(i), 40, static_cast<std::uint64_t>(i));
  CHECK(sink->wait_end());
  return sink->text();
}

} // namespace

TEST_CASE("a request runs through real threads, and draining an idle runtime is quick") {
  house h;
  std::string why;
  CHECK(h.company->port().health(why) == health_state::ready);
  const auto sink = h.ask("hello there", 20);
  CHECK(sink->wait_end());
  CHECK(sink->text().size() == 20);
  const auto begin = std::chrono::steady_clock::now();
  CHECK(h.company->drain(5s));
  CHECK(std::chrono::steady_clock::now() - begin < 3s);
  CHECK(h.company->port().health(why) == health_state::draining);
  CHECK(h.company->port().submit({}, sink).fault().code == errc::invalid_argument);
  generation_request late;
  late.prompt = "late";
  CHECK(h.company->port().submit(late, sink).fault().code == errc::shutting_down);
}

TEST_CASE("the same seed gives the same tokens alone, in a batch, and after deaths under real threads") {
  std::vector<std::string> alone;
  for (int i = 0; i < 8; ++i)
    alone.push_back(answer_alone(i));
  for (const auto kind : {actor_kind::metrics, actor_kind::batcher, actor_kind::kv_shard, actor_kind::compute_stream,
                          actor_kind::worker, actor_kind::edge_bridge}) {
    CAPTURE(name_of(kind));
    house h;
    h.door->close();
    std::vector<std::shared_ptr<collecting_sink>> sinks;
    for (int i = 0; i < 8; ++i)
      sinks.push_back(h.ask("question " + std::to_string(i), 40, static_cast<std::uint64_t>(i)));
    REQUIRE(h.door->wait_for_visitor());
    CHECK(h.company->kill(kind, 0)); // in the middle of a step
    h.door->open();
    CHECK(sinks[0]->wait_end());
    CHECK(h.company->kill(kind, 0));
    for (std::size_t i = 0; i < 8; ++i) {
      CHECK(sinks[i]->wait_end());
      CHECK(sinks[i]->ends() == 1);
      CHECK(sinks[i]->text() == alone[i]);
    }
    CHECK(h.device->inside_max == 1);
    CHECK(h.company->drain(5s));
  }
}

TEST_CASE("draining under load ends every request once and in time") {
  house h;
  h.door->close();
  std::vector<std::shared_ptr<collecting_sink>> sinks;
  for (int i = 0; i < 16; ++i)
    sinks.push_back(h.ask("long " + std::to_string(i), 200));
  REQUIRE(h.door->wait_for_visitor());
  std::thread opener([door = h.door, &sinks] {
    sinks[0]->wait_end();
    door->open();
  });
  const auto begin = std::chrono::steady_clock::now();
  CHECK_FALSE(h.company->drain(400ms)); // not all was finished
  CHECK(std::chrono::steady_clock::now() - begin < 2s);
  opener.join();
  for (const auto& sink : sinks) {
    CHECK(sink->ends() == 1);
    CHECK(sink->failed());
    CHECK(sink->failed()->fault.code == errc::shutting_down);
  }
}

TEST_CASE("a device that hangs does not hang the drain") {
  const auto door = [] {
    house h;
    h.door->close();
    const auto sink = h.ask("stuck", 10);
    REQUIRE(h.door->wait_for_visitor());
    const auto begin = std::chrono::steady_clock::now();
    CHECK_FALSE(h.company->drain(300ms));
    CHECK(std::chrono::steady_clock::now() - begin < 2s);
    CHECK(sink->ends() == 1);
    return h.door;
  }();
  door->open(); // what was left behind ends by itself
}

TEST_CASE("fault injection is refused where it is switched off, and for what is not there") {
  house h;
  CHECK(h.company->kill(actor_kind::kv_shard, 2).fault().code == errc::not_found);
  CHECK(h.company->kill(actor_kind::session, 99).fault().code == errc::not_found);
  runtime_parts parts;
  parts.device = std::make_unique<fake_backend>(std::make_shared<fake_device>());
  parts.tokens = byte_tokenizer();
  parts.model = {"fake", 256, "", 0};
  auto plain = runtime::start(std::move(parts)).value();
  CHECK(plain->kill(actor_kind::batcher).fault().code == errc::unsupported);
}

TEST_CASE("parts out of their range stop the start with the name of the field") {
  const auto message = [](auto change) {
    runtime_parts parts;
    parts.device = std::make_unique<fake_backend>(std::make_shared<fake_device>());
    parts.tokens = byte_tokenizer();
    parts.model = {"fake", 256, "", 0};
    change(parts);
    auto started = runtime::start(std::move(parts));
    return started ? std::string("started") : started.fault().message;
  };
  const auto names = [&](std::string_view field, auto change) {
    const auto text = message(change);
    CHECK_MESSAGE(text.find(field) != std::string::npos, text);
  };
  names("kv_shards", [](auto& p) { p.kv_shards = 65; });
  names("running_max", [](auto& p) { p.running_max = 0; });
  names("waiting_max", [](auto& p) { p.waiting_max = 5000; });
  names("step_tokens", [](auto& p) { p.step_tokens = 0; });
  names("workers", [](auto& p) { p.workers = 17; });
  names("history_bytes", [](auto& p) { p.history_bytes = limits::token_history_bytes_max + 1; });
  names("context_tokens", [](auto& p) { p.model.context_tokens = 0; });
  names("tokenizer", [](auto& p) { p.tokens = nullptr; });
}

TEST_CASE("an idle runtime uses no processor time") {
  house h;
  CHECK(h.ask("warm", 5)->wait_end());
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  // The time that passes is what is measured; nothing is waited for.
  std::mutex lock;
  std::condition_variable never;
  std::unique_lock guard(lock);
  never.wait_for(guard, 1s, [] { return false; });
  getrusage(RUSAGE_SELF, &after);
  const auto micros = [](const rusage& r) {
    return (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1'000'000 + r.ru_utime.tv_usec + r.ru_stime.tv_usec;
  };
  CHECK(micros(after) - micros(before) < 5'000); // 0.5% of one second
}
