// The whole company, or single actors, under CAF's test coordinator: one message at a time, a virtual clock, no thread.
//
// Every run with the same inputs is the same, message by message. Teardown stops the company and then sends exit to whatever
// is left, so that an actor with a timer can't hang it.
#pragma once
#include <caf/all.hpp>
#include <caf/scheduler/test_coordinator.hpp>

#include <functional>
#include <string>
#include <vector>

#include "actors/edge_bridge/actor_port.hpp"
#include "actors/supervisor/supervisor.hpp"
#include "tests/support/byte_tokenizer.hpp"
#include "tests/support/collecting_sink.hpp"
#include "tests/support/fake_backend.hpp"

namespace troupe::test {

struct company_options {
  std::uint32_t shards = 2;
  std::uint32_t workers = 2;
  int running_max = 4;
  int waiting_max = 8;
  int step_tokens = 32;
  int context_tokens = 256;
  prefix_policy prefix = {.prompt_states = 8};
  by_level<std::uint32_t> tier_pages{}; // of all shards
  int prefetch_ahead = 0;
  std::shared_ptr<fake_device> device = std::make_shared<fake_device>();
};

class company_fixture {
public:
  explicit company_fixture(company_options options = {});
  ~company_fixture();
  company_fixture(const company_fixture&) = delete;
  company_fixture& operator=(const company_fixture&) = delete;

  // One message of the actor that is first in line; false: nobody has one.
  bool step();
  // Until nobody has a message; virtual time stands still.
  void run();
  // As run, and lets virtual time pass where somebody waits for it, until `done` or nothing is left to happen.
  void run_until(const std::function<bool()>& done);
  void advance(std::chrono::milliseconds time);
  // Before each step, puts a random waiting actor first.
  void shuffle(std::uint64_t seed) { seed_ = seed; }

  // Receiver and message of each step so far, "batcher submit_request".
  const std::vector<std::string>& trace() const noexcept { return trace_; }

  void kill(actor_kind kind, std::uint64_t index = 0);
  std::shared_ptr<collecting_sink> ask(std::string prompt, int max_tokens, std::uint64_t seed = 1);
  std::shared_ptr<collecting_sink> ask(generation_request request);
  result<std::uint64_t> submit(generation_request request, std::shared_ptr<collecting_sink> sink);
  void stop();

  std::int64_t pages_used() const { return context->metrics->pages(page_state::used); }
  std::int64_t pages_in_all() const { return device->pages; }
  bool all_pages_back() const; // none is used; free and cached make up all

  std::shared_ptr<fake_device> device;
  std::vector<std::string> log;
  std::shared_ptr<runtime_context> context;
  std::shared_ptr<company_front> front = std::make_shared<company_front>();
  std::shared_ptr<in_flight> slots;
  std::shared_ptr<backend_slot> slot;
  std::shared_ptr<tier_store> store; // null: no tiers
  std::unique_ptr<actor_port> port;
  std::uint64_t last_request = 0;

private:
  struct config : caf::actor_system_config {
    config();
  };
  void start(const company_options& options);

  config config_;
  caf::actor_system system_{config_};
  caf::scheduler::test_coordinator& scheduler_;
  supervisor_actor supervisor_;
  std::vector<std::string> trace_;
  std::uint64_t seed_ = 0; // 0: in order
  std::uint64_t steps_ = 0;
};

} // namespace troupe::test
