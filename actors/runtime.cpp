#include "actors/runtime.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <random>

#include "actors/edge_bridge/actor_port.hpp"
#include "actors/session/context_choice.hpp"
#include "actors/supervisor/supervisor.hpp"
#include "actors/support/actor_house.hpp"
#include "base/random.hpp"
#include "config/limits.hpp"

namespace troupe {

namespace {

constexpr auto start_deadline = std::chrono::seconds(30);

std::uint64_t random_word() {
  std::random_device source;
  return static_cast<std::uint64_t>(source()) << 32 ^ source();
}

std::uint32_t pages_of(const runtime_parts& parts, const backend_shape& shape) {
  return parts.kv_pages == 0 ? shape.pages : parts.kv_pages;
}

result<void> check_parts(const runtime_parts& parts) {
  if (!parts.device || !parts.tokens)
    return fail(errc::invalid_argument, "the runtime needs a backend and a tokenizer");
  const auto shape = parts.device->shape();
  const auto within = [](std::string_view name, std::int64_t value, std::int64_t high) -> result<void> {
    if (value >= 1 && value <= high)
      return {};
    return fail(errc::invalid_argument,
                std::string(name) + " is " + std::to_string(value) + "; it must lie within 1 and " + std::to_string(high));
  };
  const auto pages = pages_of(parts, shape);
  const auto shards_max = std::min<std::int64_t>(limits::kv_shards_max, pages);
  if (auto r = within("kv_shards", parts.kv_shards, shards_max); !r)
    return r;
  if (auto r = within("running_max", parts.running_max, limits::running_sequences_max); !r)
    return r;
  if (auto r = within("waiting_max", parts.waiting_max, limits::waiting_requests_max); !r)
    return r;
  if (auto r = within("step_tokens", parts.step_tokens, limits::step_tokens_max); !r)
    return r;
  if (auto r = within("the device's step_tokens_max", shape.step_tokens_max, limits::step_tokens_max); !r)
    return r;
  if (auto r = within("workers", parts.workers, limits::workers_max); !r)
    return r;
  if (auto r = within("context_tokens", parts.model.context_tokens, limits::context_tokens_max); !r)
    return r;
  if (auto r = within("keep_percent", parts.keep_percent, limits::keep_percent_max); !r)
    return r;
  if (parts.sink_tokens < 0 || parts.sink_tokens > limits::window_sink_tokens_max)
    return fail(errc::invalid_argument, "sink_tokens is " + std::to_string(parts.sink_tokens) + "; it must lie within 0 and " +
                                            std::to_string(limits::window_sink_tokens_max));
  std::vector<token_id> none;
  const int context = parts.model.context_tokens;
  if (const auto fit = choose_context(parts.overflow, context, parts.sink_tokens, context + 1, none); !fit)
    return fit.fault(); // no turn could outgrow it
  if (parts.history_bytes > limits::token_history_bytes_max)
    return fail(errc::invalid_argument, "history_bytes is " + std::to_string(parts.history_bytes) + "; at most " +
                                            std::to_string(limits::token_history_bytes_max));
  return within("pages", pages, std::min<std::int64_t>(shape.pages, std::int64_t{limits::kv_pages_max} * parts.kv_shards));
}

// Contiguous ranges of nearly equal size.
std::vector<tiered_shard_config> share_pages(std::uint32_t pages, std::uint32_t shards, const prefix_policy& prefix) {
  std::vector<tiered_shard_config> out;
  page_id first = 0;
  for (std::uint32_t i = 0; i < shards; ++i) {
    const std::uint32_t count = pages / shards + (i < pages % shards ? 1 : 0);
    out.push_back({{i, first, count, prefix}, {}});
    first += count;
  }
  return out;
}

// What the journals know of the file that an earlier process left, where it is of the same kind.
result<tier_file> open_kept_file(const std::filesystem::path& path, const tier_file_shape& shape,
                                 std::vector<tiered_shard_config>& shards, const log_sink& log) {
  auto found = tier_file::open_named(path, shape);
  if (!found)
    return found;
  std::size_t entries = 0;
  for (const auto& shard : shards) {
    const auto read = shard.tiers.journal->read();
    if (!read)
      log_to(log, log_level::error, read.fault().message);
    entries += read ? *read : 0;
  }
  log_to(log, log_level::info, std::to_string(entries) + " KV pages of an earlier process are on disk");
  return found;
}

// Else a fresh file, and no records: they are not read here, as they are erased when their thread comes to it.
result<std::unique_ptr<tier_store>> make_kept_tiers(const tier_parts& parts, const tier_store_options& options,
                                                    std::vector<tiered_shard_config>& shards, const log_sink& log) {
  const auto path = parts.folder / "pages.kv";
  // Each shard has its own part of the slots.
  const tier_file_shape shape{options.page_bytes, options.slots[index_of(tier_level::disk)],
                              options.identity + ", " + std::to_string(shards.size()) + " shards"};
  for (std::size_t i = 0; i < shards.size(); ++i)
    shards[i].tiers.journal = std::make_shared<tier_journal>(parts.records, static_cast<std::uint32_t>(i));
  auto kept = open_kept_file(path, shape, shards, log);
  if (kept)
    return tier_store::create(options, std::move(*kept));
  if (kept.fault().code != errc::not_found)
    log_to(log, log_level::warning, "KV pages of an earlier process are not used: " + kept.fault().message);
  tier_journal::forget_all(*parts.records);
  auto fresh = tier_file::create_named(path, shape);
  if (!fresh)
    return fresh.fault();
  return tier_store::create(options, std::move(*fresh));
}

// Makes the tiers and gives each shard its share of their slots; null where none is wanted.
result<std::shared_ptr<tier_store>> make_tiers(const tier_parts& parts, const backend& device,
                                               std::vector<tiered_shard_config>& shards, const log_sink& log) {
  if (parts.host_bytes == 0 && parts.disk_bytes == 0)
    return std::shared_ptr<tier_store>();
  if (parts.prefetch_ahead < 0 || parts.prefetch_ahead > limits::prefetch_ahead_max)
    return fail(errc::invalid_argument, "prefetch_ahead is " + std::to_string(parts.prefetch_ahead) +
                                            "; it must lie within 0 and " + std::to_string(limits::prefetch_ahead_max));
  const auto page_bytes = device.shape().page_bytes;
  std::vector<std::byte> page(page_bytes);
  if (auto copied = device.read_page(0, page); !copied)
    return fail(copied.fault().code, "the KV tiers can't be used: " + copied.fault().message);
  by_level<std::uint64_t> share{parts.host_bytes / page_bytes, parts.disk_bytes / tier_file::slot_bytes(page_bytes)};
  tier_store_options options{page_bytes, {}, parts.folder, parts.identity};
  const std::array names{"host", "disk"};
  for (std::size_t level = 0; level < tier_levels; ++level) {
    share[level] = std::min<std::uint64_t>(share[level] / shards.size(), limits::tier_slots_max);
    if (share[level] == 0 && (level == 0 ? parts.host_bytes : parts.disk_bytes) > 0)
      return fail(errc::invalid_argument, std::string("the KV ") + names[level] + " tier is smaller than a page of " +
                                              std::to_string(page_bytes >> 10) + " KiB for each of " +
                                              std::to_string(shards.size()) + " shards");
    options.slots[level] = static_cast<std::uint32_t>(share[level] * shards.size());
  }
  for (std::size_t i = 0; i < shards.size(); ++i) {
    auto& tiers = shards[i].tiers;
    tiers.prefetch_ahead = parts.prefetch_ahead;
    tiers.index.time_to_live = parts.time_to_live;
    for (std::size_t level = 0; level < tier_levels; ++level) {
      tiers.index.slots[level] = static_cast<std::uint32_t>(share[level]);
      tiers.index.first[level] = static_cast<std::uint32_t>(share[level] * i);
    }
  }
  const bool kept = parts.records && options.slots[index_of(tier_level::disk)] > 0;
  auto made = kept ? make_kept_tiers(parts, options, shards, log) : tier_store::create(options);
  if (!made)
    return made.fault();
  return std::shared_ptr<tier_store>(std::move(*made));
}

context_ptr make_context(runtime_parts& parts) {
  auto context = std::make_shared<runtime_context>();
  context->tokens = parts.tokens;
  context->chat = std::move(parts.chat);
  context->model = std::move(parts.model);
  context->defaults = std::move(parts.sampling);
  context->end_tokens = std::move(parts.end_tokens);
  context->marks = find_answer_tokens(*parts.tokens);
  context->context_tokens = context->model.context_tokens;
  context->overflow = parts.overflow;
  context->sink_tokens = parts.sink_tokens;
  context->keep_percent = parts.keep_percent;
  context->secret = parts.secret ? *parts.secret : random_word();
  context->call_key = random_word();
  if (parts.history_bytes > 0)
    context->history.emplace(
        history_choice{parts.history_bytes / static_cast<std::size_t>(parts.workers), hash_key(random_word)});
  context->draw = [key = random_word(), drawn = std::make_shared<std::atomic<std::uint64_t>>(0)] {
    return random_at(key, drawn->fetch_add(1, std::memory_order_relaxed));
  };
  context->clock = std::move(parts.clock);
  context->log = std::move(parts.log);
  context->check_invariants = parts.check_invariants;
  context->metrics = std::make_shared<metrics_registry>();
  return context;
}

} // namespace

struct runtime::parts_inside {
  context_ptr context;
  std::shared_ptr<company_front> front = std::make_shared<company_front>();
  std::shared_ptr<in_flight> slots;
  std::shared_ptr<backend_slot> device;
  std::unique_ptr<actor_port> port;
  bool fault_injection = false;
  std::unique_ptr<actor_house> house;
  supervisor_actor supervisor;
  std::shared_future<void> ended; // the supervisor's end
  bool stopped = false;
  bool stopped_in_time = true;

  void start_company(company_parts parts);
  void end_open_tickets(const error& fault);
  bool stop(std::chrono::steady_clock::time_point deadline);
};

void runtime::parts_inside::start_company(company_parts parts) {
  house = std::make_unique<actor_house>(
      [&](caf::actor_system& system) { supervisor = system.spawn(troupe::supervisor, std::move(parts)); });
  auto promise = std::make_shared<std::promise<void>>();
  ended = promise->get_future().share();
  supervisor->attach_functor([promise, health = front, log = context->log](const caf::error& reason) {
    if (reason && reason != caf::exit_reason::normal) {
      // The root has no one above it: say so to whoever asks for the health.
      health->set_health(health_state::failing, "the supervisor died");
      for (const auto& ticket : health->open())
        ticket->fail({errc::internal, "the service failed"});
    }
    promise->set_value();
  });
}

void runtime::parts_inside::end_open_tickets(const error& fault) {
  for (const auto& ticket : front->open())
    ticket->fail(fault);
}

bool runtime::parts_inside::stop(std::chrono::steady_clock::time_point deadline) {
  const error fault{errc::shutting_down, "the service is shutting down"};
  end_open_tickets(fault);
  if (!house)
    return true;
  caf::anon_send(supervisor, stop_company{fault});
  const bool in_time = ended.wait_until(deadline) == std::future_status::ready;
  end_open_tickets(fault);
  front->publish(nullptr);
  supervisor = nullptr;
  if (house->close(deadline) && in_time)
    return true;
  log_to(context->log, log_level::error, "some actors did not end in time and are left behind");
  return false;
}

runtime::runtime(std::unique_ptr<parts_inside> inside) : inside_(std::move(inside)) {}

runtime::~runtime() {
  drain(limits::shutdown_deadline);
}

result<std::unique_ptr<runtime>> runtime::start(runtime_parts parts) {
  if (auto valid = check_parts(parts); !valid)
    return valid.fault();

  auto shards = share_pages(pages_of(parts, parts.device->shape()), static_cast<std::uint32_t>(parts.kv_shards), parts.prefix);
  auto store = make_tiers(parts.tiers, *parts.device, shards, parts.log);
  if (!store)
    return store.fault();

  auto inside = std::make_unique<parts_inside>();
  inside->fault_injection = parts.fault_injection;
  inside->device = std::make_shared<backend_slot>(std::move(parts.device), parts.clock);
  inside->slots = std::make_shared<in_flight>(parts.running_max + parts.waiting_max);
  const auto shape = inside->device->shape();

  company_parts company;
  company.front = inside->front;
  company.slot = inside->device;
  company.store = std::move(*store);
  company.schedule.evicted_come_back = company.store != nullptr;
  company.shards = std::move(shards);
  for (const auto& shard : company.shards)
    company.schedule.shard_pages.push_back(shard.pages.pages);
  company.schedule.running_max = parts.running_max;
  company.schedule.prompt_states = parts.prefix.reuse && parts.prefix.prompt_states > 0;
  // The gate has counted already; here all that it admits may wait at once.
  company.schedule.waiting_max = parts.running_max + parts.waiting_max;
  company.schedule.step_tokens = std::min(parts.step_tokens, shape.step_tokens_max);
  company.workers = static_cast<std::uint32_t>(parts.workers);
  company.context = inside->context = make_context(parts);

  inside->port = std::make_unique<actor_port>(port_parts{inside->context, inside->front, inside->slots, inside->device});
  try {
    inside->start_company(std::move(company));
  } catch (const std::exception& e) {
    return fail(errc::internal, std::string("the actor system can't be started: ") + e.what());
  }
  auto out = std::unique_ptr<runtime>(new runtime(std::move(inside)));
  if (!out->inside_->front->wait_started(std::chrono::steady_clock::now() + start_deadline))
    return fail(errc::timeout, "the actors did not start in time");
  return out;
}

edge_port& runtime::port() {
  return *inside_->port;
}

bool runtime::drain(std::chrono::steady_clock::duration deadline) {
  auto& inside = *inside_;
  if (std::exchange(inside.stopped, true))
    return inside.stopped_in_time;
  const auto begin = std::chrono::steady_clock::now();
  // A quarter, at most a second, is kept for stopping the actors.
  const auto reserve = std::min<std::chrono::steady_clock::duration>(deadline / 4, std::chrono::seconds(1));
  inside.front->set_health(health_state::draining, "the service is shutting down");
  const bool finished = inside.slots->wait_none(begin + deadline - reserve);
  const bool stopped = inside.stop(begin + deadline);
  inside.stopped_in_time = finished && stopped;
  return inside.stopped_in_time;
}

// The shard that knows the beginning is the one that has something to bring up.
void runtime::expect(std::uint64_t salt, std::vector<token_id> tokens) {
  const auto peers = inside_->front->peers();
  if (!peers || tokens.empty())
    return;
  const expect_prompt hint{salt, std::make_shared<const std::vector<token_id>>(std::move(tokens))};
  for (const auto& shard : peers->shards)
    if (shard.alive())
      caf::anon_send(shard.handle, hint);
}

result<void> runtime::kill(actor_kind kind, std::uint64_t index) {
  if (!inside_->fault_injection)
    return fail(errc::unsupported, "fault injection is switched off");
  const auto peers = inside_->front->peers();
  if (!peers)
    return fail(errc::shutting_down, "the service is shutting down");
  const bool exists = kind == actor_kind::session           ? inside_->front->find(index) != nullptr
                      : kind == actor_kind::kv_shard        ? index < peers->shards.size()
                      : kind == actor_kind::worker          ? index < peers->workers.size()
                      : kind == actor_kind::transfer_stream ? index == 0 && peers->transfer.incarnation > 0
                                                            : index == 0;
  if (!exists)
    return fail(errc::not_found, "there is no " + std::string(name_of(kind)) + " " + std::to_string(index));
  caf::anon_send(inside_->supervisor, kill_actor{kind, index});
  return {};
}

} // namespace troupe
