#include "app/engine.hpp"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <tuple>

#include "base/process_memory.hpp"
#include "config/limits.hpp"
#include "config/memory_plan.hpp"
#include "cpu/cpu_backend.hpp"
#include "cpu/kv_store.hpp"
#include "model/model_file.hpp"
#include "storage/fingerprint.hpp"
#include "storage/sqlite_records.hpp"

namespace troupe {
namespace {

constexpr const char* default_model = "models/tiny"; // as seen from the repository's root
constexpr int default_kv_tokens = 8 * 4096; // room for eight chats of 4,096 tokens

struct kv_plan {
  std::uint32_t pages = 0;
  int context_tokens = 0; // of one sequence, which lives in one shard
};

std::uint64_t physical_memory() {
  return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

result<kv_types> kv_types_of(const settings& s) {
  kv_types types;
  for (const auto& [setting, name, type] : {std::tuple{"memory.kv_keys", &s.memory.kv_keys, &types.keys},
                                            {"memory.kv_values", &s.memory.kv_values, &types.values}}) {
    const auto named = kv_type_named(*name);
    if (!named)
      return fail(errc::invalid_argument, std::string(setting) + ": '" + *name + "' is none of f16, bf16, int8, int4");
    *type = *named;
  }
  return types;
}

std::uint64_t pages_for(std::uint64_t tokens) { return (tokens + limits::page_tokens - 1) / limits::page_tokens; }

int wanted_context(const settings& s, const hyperparameters& shape) {
  return s.memory.context_tokens ? std::min(s.memory.context_tokens, shape.context_tokens) : shape.context_tokens;
}

// `pages`: as many as there is memory for.
kv_plan share_pages(const settings& s, const hyperparameters& shape, std::uint64_t pages) {
  const auto shards = static_cast<std::uint64_t>(s.memory.kv_shards);
  kv_plan plan;
  plan.pages = static_cast<std::uint32_t>(pages - pages % shards);
  plan.context_tokens = static_cast<int>(
      std::min<std::uint64_t>(static_cast<std::uint64_t>(wanted_context(s, shape)), plan.pages / shards * limits::page_tokens));
  return plan;
}

// How many pages the settings ask for. Under a memory limit that names no number: all that could fit, for the address space
// alone; plan_memory() decides when the rest is known.
result<std::uint64_t> wanted_pages(const settings& s, const hyperparameters& shape, std::uint64_t page_bytes) {
  const auto shards = static_cast<std::uint64_t>(s.memory.kv_shards);
  std::uint64_t pages = std::max(pages_for(default_kv_tokens), shards * pages_for(static_cast<std::uint64_t>(wanted_context(s, shape))));
  std::uint64_t most = physical_memory() / 4 / page_bytes;
  if (static_cast<std::uint64_t>(s.memory.kv_mib) << 20 > physical_memory())
    return fail(errc::no_memory, "memory.kv_mib: " + std::to_string(s.memory.kv_mib) + " MiB are more than this machine's " +
                                     std::to_string(physical_memory() >> 20) + " MiB");
  if (s.memory.kv_mib)
    pages = most = (static_cast<std::uint64_t>(s.memory.kv_mib) << 20) / page_bytes;
  else if (s.memory.limit)
    pages = most = std::max(s.memory.limit / page_bytes, shards);
  pages = std::min({pages, most, static_cast<std::uint64_t>(limits::kv_pages_max)});
  if (pages < shards)
    return fail(errc::no_memory, "memory.kv_mib: " + std::to_string(most * page_bytes >> 20) + " MiB hold less than one page of " +
                                     std::to_string(page_bytes >> 10) + " KiB for each of " + std::to_string(shards) + " shards");
  return pages;
}

// What the tiers take of the host's memory when they are full.
std::uint64_t tier_bytes(const settings& s, std::uint64_t page_bytes) {
  constexpr std::uint64_t entry_bytes = 640, conversation_bytes = 512;
  const auto host = static_cast<std::uint64_t>(s.memory.host_tier_mib) << 20;
  const auto disk = static_cast<std::uint64_t>(s.memory.disk_tier_mib) << 20;
  if (host + disk == 0)
    return 0;
  const auto shards = static_cast<std::uint64_t>(s.memory.kv_shards);
  return host + (host + disk) / page_bytes * entry_bytes + shards * limits::known_conversations_max * conversation_bytes;
}

// Under memory.limit: what is left for KV pages and requests now that the model is loaded.
result<memory_plan> divide_memory(const settings& s, const model_weights& weights, const backend_shape& device) {
  malloc_trim(0);
  const auto now = memory_of_process();
  const auto& shape = weights.shape;
  const auto shards = static_cast<std::uint64_t>(s.memory.kv_shards);
  const auto context = static_cast<std::uint64_t>(wanted_context(s, shape));
  constexpr std::uint64_t state_upkeep_bytes = 256, request_upkeep_bytes = 24u << 10, request_token_bytes = 16;
  memory_needs needs;
  needs.resident_bytes = now.resident_bytes;
  needs.peak_bytes = now.peak_bytes;
  needs.later_bytes = weights.token_embedding.bytes();
  if (s.memory.prefix_reuse)
    needs.state_bytes = shards * static_cast<std::uint64_t>(s.memory.prompt_states) *
                        (static_cast<std::uint64_t>(shape.hidden) * sizeof(float) + state_upkeep_bytes);
  needs.page_bytes = device.page_bytes;
  needs.tier_bytes = tier_bytes(s, device.page_bytes);
  needs.request_bytes = request_upkeep_bytes + context * request_token_bytes;
  needs.pages_min = static_cast<std::uint32_t>(
      s.memory.kv_mib ? device.pages : shards * pages_for(std::min<std::uint64_t>(context, limits::limited_kv_tokens_min)));
  needs.requests_max = s.scheduler.running_max + s.scheduler.waiting_max;
  auto plan = plan_memory(s.memory.limit, needs);
  if (plan)
    plan->pages = std::min(plan->pages, device.pages);
  return plan;
}

sampling_params known_set(float temperature, float top_p) {
  sampling_params set;
  set.temperature = temperature;
  set.top_p = top_p;
  set.top_k = 20;
  return set;
}

// Qwen3 recommends one set with a think block and one without; its files carry the first only.
sampling_defaults defaults_of(const model_file& file, const std::optional<chat_template>& chat) {
  sampling_defaults defaults{file.sampling, std::nullopt};
  if (!chat || !chat->thinks())
    return defaults;
  const auto thinking = known_set(0.6f, 0.95f);
  const bool thinking_set_in_file = file.has_sampling && file.sampling.temperature == thinking.temperature &&
                                    file.sampling.top_p == thinking.top_p && file.sampling.top_k == thinking.top_k;
  if (!file.has_sampling || thinking_set_in_file) {
    defaults.answer = known_set(0.7f, 0.8f);
    defaults.thinking = thinking;
  }
  return defaults;
}

result<std::optional<chat_template>> choose_template(const settings& s, const model_file& file,
                                                     const std::shared_ptr<const tokenizer>& tokens, const log_sink& log) {
  template_kind kind{};
  if (!s.model.chat_template.empty()) {
    const auto named = template_named(s.model.chat_template);
    if (!named)
      return fail(errc::invalid_argument, "model.chat_template: no template is called '" + s.model.chat_template + "'");
    kind = *named;
  } else if (file.chat_template.empty()) {
    log_to(log, log_level::warning, "the model has no chat template: raw completions only, unless --chat-template names one");
    return std::optional<chat_template>();
  } else {
    const auto recognised = recognise_template(file.chat_template);
    if (!recognised)
      return recognised.fault();
    kind = *recognised;
  }
  auto made = chat_template::create(kind, tokens);
  if (!made)
    return made.fault();
  return std::optional<chat_template>(std::move(*made));
}

std::string own_name(const std::filesystem::path& path, const hyperparameters& shape) {
  if (!shape.name.empty())
    return shape.name;
  const auto clean = path.has_filename() ? path : path.parent_path();
  return clean.stem().string();
}

// What pages must agree in to stand for one another: the model, how a page is laid out, and what computes it.
std::string identity_of(const std::filesystem::path& model, const hyperparameters& shape, const settings& s,
                        const backend_shape& device) {
  std::error_code unread;
  const auto bytes = std::filesystem::is_regular_file(model, unread) ? std::filesystem::file_size(model, unread) : 0;
  const auto name = own_name(model, shape).substr(0, 256);
  const auto processor = device.description.substr(0, device.description.find(',')); // how many threads changes no bit
  return name + ", " + std::to_string(bytes) + " bytes, " + std::to_string(shape.layers) + " layers, " +
         std::to_string(shape.kv_heads) + " heads of " + std::to_string(shape.head_dim) + ", keys " + s.memory.kv_keys +
         ", values " + s.memory.kv_values + ", pages of " + std::to_string(limits::page_tokens) + " tokens in " +
         std::to_string(device.page_bytes) + " bytes, " + processor;
}

} // namespace

result<std::optional<kept_state>> open_state(const settings& s, const log_sink& log) {
  if (!s.memory.persistence)
    return std::optional<kept_state>();
  const auto path = s.memory.state_dir.empty() ? default_state_folder() : result<std::filesystem::path>(s.memory.state_dir);
  if (!path)
    return path.fault();
  auto folder = state_folder::open(*path);
  if (!folder)
    return folder.fault();
  const auto secret = folder->secret();
  if (!secret)
    return secret.fault();
  auto records = open_sqlite_records({*path / "records.sqlite", limits::records_bytes_max, log});
  if (!records)
    return records.fault();
  auto pages = open_sqlite_records({*path / "pages.sqlite", limits::records_bytes_max, log});
  if (!pages)
    return pages.fault();
  return std::optional<kept_state>(kept_state{std::move(*folder), std::move(*records), std::move(*pages), *secret});
}

result<std::unique_ptr<runtime>> start_engine(const settings& s, const kept_state* state, const log_sink& log) {
  const auto kv_types = kv_types_of(s); // before the model is read: a bad setting is told at once
  if (!kv_types)
    return kv_types.fault();
  const std::filesystem::path path = s.model.path.empty() ? default_model : s.model.path;
  auto file = open_model(path);
  if (!file)
    return fail(file.fault().code, path.string() + ": " + file.fault().message);
  auto tokens = tokenizer::build(std::move(file->tokenizer));
  if (!tokens)
    return fail(tokens.fault().code, path.string() + ": " + tokens.fault().message);
  auto chat = choose_template(s, *file, *tokens, log);
  if (!chat)
    return chat.fault();
  const auto shape = file->weights.shape;
  const auto one_page = cpu::kv_store::create(shape, *kv_types, 1);
  if (!one_page)
    return one_page.fault();
  const auto pages = wanted_pages(s, shape, one_page->page_bytes());
  if (!pages)
    return pages.fault();

  cpu_options device;
  device.threads = s.cpu.threads;
  device.isa = s.cpu.isa;
  device.pages = static_cast<std::uint32_t>(*pages);
  device.touch_scratch = s.memory.limit != 0;
  device.kv = *kv_types;
  device.step_tokens_max = std::max(s.scheduler.step_tokens, s.scheduler.running_max);
  device.usable_vocabulary = std::min((*tokens)->size(), shape.vocabulary);
  device.log = log;
  auto made = make_cpu_backend(file->weights, device);
  if (!made)
    return fail(made.fault().code, path.string() + ": " + made.fault().message);
  const auto device_shape = (*made)->shape();
  memory_plan memory{device_shape.pages, s.scheduler.running_max + s.scheduler.waiting_max};
  if (s.memory.limit) {
    const auto planned = divide_memory(s, file->weights, device_shape);
    if (!planned)
      return planned.fault();
    memory = *planned;
  }
  const auto kv = share_pages(s, shape, memory.pages);

  runtime_parts parts;
  parts.model.name = own_name(path, shape);
  parts.model.context_tokens = kv.context_tokens;
  parts.model.chat_template = *chat ? std::string(name_of((*chat)->kind())) : std::string();
  parts.model.created = static_cast<std::int64_t>(std::time(nullptr));
  parts.sampling = defaults_of(*file, *chat);
  parts.device = std::move(*made);
  parts.tokens = std::move(*tokens);
  parts.chat = std::move(*chat);
  parts.end_tokens = file->end_tokens;
  parts.kv_shards = s.memory.kv_shards;
  parts.overflow = s.memory.context_overflow == "window"     ? overflow_policy::window
                   : s.memory.context_overflow == "compress" ? overflow_policy::compress
                                                             : overflow_policy::refuse;
  parts.keep_percent = s.memory.keep_percent;
  parts.sink_tokens = s.memory.window_sinks;
  parts.kv_pages = kv.pages;
  parts.prefix.reuse = s.memory.prefix_reuse;
  parts.prefix.partial_pages = s.memory.partial_pages;
  parts.prefix.prompt_states = static_cast<std::uint32_t>(s.memory.prompt_states);
  parts.prefix.time_to_live = std::chrono::seconds(s.memory.prefix_ttl_s);
  parts.prefix.eviction = s.memory.prefix_eviction == "lfu" ? eviction_policy::lfu : eviction_policy::lru;
  parts.prefix.pinned_percent = s.memory.pinned_percent;
  parts.tiers.host_bytes = static_cast<std::uint64_t>(s.memory.host_tier_mib) << 20;
  parts.tiers.disk_bytes = static_cast<std::uint64_t>(s.memory.disk_tier_mib) << 20;
  if (!s.memory.tier_dir.empty())
    parts.tiers.folder = s.memory.tier_dir;
  parts.tiers.identity = identity_of(path, shape, s, device_shape);
  parts.tiers.time_to_live = std::chrono::seconds(s.memory.tier_ttl_s);
  parts.tiers.prefetch_ahead = s.memory.prefetch_ahead;
  if (s.memory.token_history)
    parts.history_bytes = std::min(static_cast<std::size_t>(s.memory.token_history_mib) << 20, share_memory(s.memory.limit).history_bytes);
  else
    parts.history_bytes = 0;
  parts.running_max = std::min(s.scheduler.running_max, std::max(1, memory.requests_max / 2));
  parts.waiting_max = std::clamp(memory.requests_max - parts.running_max, 1, s.scheduler.waiting_max);
  parts.step_tokens = s.scheduler.step_tokens;
  if (state != nullptr) {
    parts.secret = state->secret;
    parts.tiers.records = state->pages;
    parts.tiers.folder = state->folder.path();
    // Pages of another process must be what this one would compute, to the bit: of the same weights and the same program.
    for (const std::filesystem::path& each : {path, std::filesystem::path("/proc/self/exe")}) {
      const auto print = parts.tiers.disk_bytes > 0 ? fingerprint_of(each) : std::string();
      if (!print)
        return print.fault();
      parts.tiers.identity += ", " + *print;
    }
  }
  parts.fault_injection = s.process.fault_injection;
  parts.log = log;
  log_to(log, log_level::info,
         parts.model.name + ": " + std::to_string(device_shape.weight_bytes >> 20) + " MiB of weights, context " +
             std::to_string(kv.context_tokens) + " tokens, room for " +
             std::to_string(static_cast<std::uint64_t>(kv.pages) * limits::page_tokens) + " tokens of KV (" +
             std::to_string(kv.pages * device_shape.page_bytes >> 20) + " MiB, keys " + s.memory.kv_keys + ", values " +
             s.memory.kv_values + "), " + device_shape.description);
  return runtime::start(std::move(parts));
}

log_sink stderr_log(log_level lowest) {
  return [lowest](log_level level, std::string_view line) {
    if (level < lowest)
      return;
    static constexpr const char* names[] = {"debug", "info", "warning", "error"};
    const auto now = std::chrono::system_clock::now();
    const auto seconds = std::chrono::system_clock::to_time_t(now);
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
    std::tm utc{};
    gmtime_r(&seconds, &utc);
    char stamp[32];
    std::strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &utc);
    std::fprintf(stderr, "%s.%03dZ %-7s %.*s\n", stamp, static_cast<int>(ms), names[static_cast<int>(level)],
                 static_cast<int>(line.size()), line.data());
  };
}

} // namespace troupe
