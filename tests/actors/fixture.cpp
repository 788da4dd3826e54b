#include "tests/actors/fixture.hpp"

namespace troupe::test {

namespace {

template <class... Messages>
const char* name_among(const caf::type_erased_tuple& message, std::initializer_list<const char*> names) {
  const char* found = "?";
  auto name = names.begin();
  ((message.match_elements<Messages>() ? void(found = *name++) : void(++name)), ...);
  return found;
}

const char* name_of_message(const caf::type_erased_tuple& message) {
  return name_among<open_session, cancel_generation, adopt_session, session_opened, session_closed, session_lost, end_session,
                    prepare_prompt, prompt_prepared, submit_request, cancel_request, take_shard, shard_taken, reserve_pages,
                    grow_pages, publish_pages, release_pages, page_answer, run_step, step_ended, tokens_generated,
                    request_finished, request_failed, pages_changed, batch_changed, actor_died, peers_changed, kill_actor,
                    await_steps, steps_awaited, move_pages, pages_moved, settle_moves, moves_settled, expect_prompt, stop_company, restart_due, caf::exit_msg, caf::down_msg>(
      message, {"open_session",     "cancel_generation", "adopt_session",  "session_opened",
                "session_closed",   "session_lost",      "end_session",    "prepare_prompt",
                "prompt_prepared",  "submit_request",    "cancel_request", "take_shard",
                "shard_taken",      "reserve_pages",     "grow_pages",     "publish_pages",
                "release_pages",    "page_answer",       "run_step",       "step_ended",
                "tokens_generated", "request_finished",  "request_failed", "pages_changed",
                "batch_changed",    "actor_died",        "peers_changed",  "kill_actor",
                "await_steps",      "steps_awaited",     "move_pages",     "pages_moved",
                "settle_moves",     "moves_settled",     "expect_prompt",
                "stop_company",     "restart_due",       "exit",           "down"});
}

} // namespace

company_fixture::config::config() {
  set("scheduler.policy", caf::atom("testing"));
  set("logger.console", caf::atom("none"));
  set("logger.file-verbosity", caf::atom("quiet"));
}

company_fixture::company_fixture(company_options options)
    : device(options.device), scheduler_(dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler())) {
  // CAF's virtual clock begins at 0; ours must not, because 0 means "never" in places.
  scheduler_.advance_time(std::chrono::seconds(1));
  start(options);
}

void company_fixture::start(const company_options& options) {
  context = std::make_shared<runtime_context>();
  context->tokens = byte_tokenizer();
  context->chat = chat_template::create(template_kind::qwen3, context->tokens).value();
  context->model = {"fake", options.context_tokens, "", 0};
  context->defaults.answer.temperature = 0.7f;
  context->end_tokens = {added::im_end};
  context->marks = find_answer_tokens(*context->tokens);
  context->context_tokens = options.context_tokens;
  context->history.emplace(
      history_choice{std::size_t{1} << 20, hash_key([drawn = std::uint64_t{0}]() mutable { return random_at(42, ++drawn); })});
  context->secret = 42;
  context->draw = [drawn = std::make_shared<std::uint64_t>(0)] { return ++*drawn; };
  context->clock = [this] { return scheduler_.clock().now(); };
  context->log = [this](log_level, std::string_view line) { log.emplace_back(line); };
  context->check_invariants = true;
  context->metrics = std::make_shared<metrics_registry>();

  slots = std::make_shared<in_flight>(options.running_max + options.waiting_max);
  slot = std::make_shared<backend_slot>(std::make_unique<fake_backend>(device), context->clock);
  port = std::make_unique<actor_port>(port_parts{context, front, slots, slot});

  company_parts parts;
  parts.context = context;
  parts.front = front;
  parts.slot = slot;
  parts.workers = options.workers;
  parts.threads = false;
  if (options.tier_pages[0] + options.tier_pages[1] > 0)
    parts.store = store =
        tier_store::create({slot->shape().page_bytes, options.tier_pages, "/var/tmp", "fake"}).value();
  const std::uint32_t share = device->pages / options.shards;
  for (std::uint32_t i = 0; i < options.shards; ++i) {
    parts.shards.push_back({{i, i * share, share, options.prefix}, {}});
    parts.shards.back().tiers.prefetch_ahead = options.prefetch_ahead;
    for (std::size_t level = 0; level < tier_levels; ++level) {
      const auto room = options.tier_pages[level] / options.shards;
      parts.shards.back().tiers.index.first[level] = i * room;
      parts.shards.back().tiers.index.slots[level] = room;
    }
    parts.schedule.shard_pages.push_back(share);
  }
  parts.schedule.evicted_come_back = parts.store != nullptr;
  parts.schedule.running_max = options.running_max;
  parts.schedule.waiting_max = options.running_max + options.waiting_max;
  parts.schedule.step_tokens = options.step_tokens;
  parts.schedule.prompt_states = options.prefix.prompt_states > 0;
  supervisor_ = system_.spawn(supervisor, std::move(parts));
  run();
  trace_.clear();
}

company_fixture::~company_fixture() {
  stop();
  // Nothing is left after a clean stop; after a failed test this keeps the system's destructor from waiting for ever.
  if (const auto peers = front->peers()) {
    for (const auto& shard : peers->shards)
      caf::anon_send_exit(shard.handle, caf::exit_reason::kill);
    for (const auto& each : peers->workers)
      caf::anon_send_exit(each.handle, caf::exit_reason::kill);
    caf::anon_send_exit(peers->compute.handle, caf::exit_reason::kill);
    caf::anon_send_exit(peers->transfer.handle, caf::exit_reason::kill);
    caf::anon_send_exit(peers->batcher.handle, caf::exit_reason::kill);
    caf::anon_send_exit(peers->bridge.handle, caf::exit_reason::kill);
    caf::anon_send_exit(peers->metrics.handle, caf::exit_reason::kill);
  }
  caf::anon_send_exit(supervisor_, caf::exit_reason::kill);
  front->publish(nullptr);
  supervisor_ = nullptr;
  do {
    while (scheduler_.try_run_once()) {
    }
  } while (scheduler_.trigger_timeout());
}

bool company_fixture::step() {
  auto& jobs = scheduler_.jobs;
  if (jobs.empty())
    return false;
  if (seed_ != 0) {
    const auto pick = static_cast<std::ptrdiff_t>(random_at(seed_, steps_++) % jobs.size());
    std::rotate(jobs.begin(), jobs.begin() + pick, jobs.begin() + pick + 1);
  }
  if (auto* actor = dynamic_cast<caf::scheduled_actor*>(jobs.front()))
    if (auto* next = actor->mailbox().peek())
      trace_.push_back(std::string(actor->name()) + " " + name_of_message(next->content()));
  return scheduler_.try_run_once();
}

void company_fixture::run() {
  while (step()) {
  }
}

void company_fixture::run_until(const std::function<bool()>& done) {
  run();
  // Restarts wait at most restart_delay_max; each is one timeout.
  for (int i = 0; i < 64 && !done(); ++i) {
    if (!scheduler_.has_pending_timeout())
      return;
    scheduler_.trigger_timeout();
    run();
  }
}

void company_fixture::advance(std::chrono::milliseconds time) {
  scheduler_.advance_time(time);
  run();
}

void company_fixture::kill(actor_kind kind, std::uint64_t index) {
  caf::anon_send(supervisor_, kill_actor{kind, index});
}

result<std::uint64_t> company_fixture::submit(generation_request request, std::shared_ptr<collecting_sink> sink) {
  auto number = port->submit(std::move(request), std::move(sink));
  if (number)
    last_request = *number;
  return number;
}

std::shared_ptr<collecting_sink> company_fixture::ask(generation_request request) {
  auto sink = std::make_shared<collecting_sink>();
  submit(std::move(request), sink).value();
  return sink;
}

std::shared_ptr<collecting_sink> company_fixture::ask(std::string prompt, int max_tokens, std::uint64_t seed) {
  generation_request request;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  request.sampling.seed = seed;
  return ask(std::move(request));
}

void company_fixture::stop() {
  for (const auto& ticket : front->open())
    ticket->fail({errc::shutting_down, "the service is shutting down"});
  caf::anon_send(supervisor_, stop_company{{errc::shutting_down, "the service is shutting down"}});
  run();
}

bool company_fixture::all_pages_back() const {
  const auto& m = *context->metrics;
  return pages_used() == 0 && m.pages(page_state::free) + m.pages(page_state::cached) == pages_in_all();
}

} // namespace troupe::test
