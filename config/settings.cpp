#include "config/settings.hpp"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <variant>

#include <unistd.h>

#include "config/limits.hpp"

namespace troupe {
namespace {

struct integer_setting {
  int* value;
  int low, high;
};
struct bytes_setting { // a number, in KiB, MiB, GiB or TiB where so marked
  std::uint64_t* value;
  std::uint64_t high;
};
struct switch_setting {
  bool* value;
};
struct text_setting {
  std::string* value;
};
struct choice_setting {
  std::string* value;
  std::vector<std::string_view> allowed;
};
struct list_setting { // comma-separated; empty parts are left out
  std::vector<std::string>* value;
};

// One row a setting: the only list of names, used by every source and by describe().
struct setting_row {
  std::string_view section, key;
  std::variant<integer_setting, bytes_setting, switch_setting, text_setting, choice_setting, list_setting> target;
};

std::vector<setting_row> rows_of(settings& s) {
  return {
      {"model", "path", text_setting{&s.model.path}},
      {"model", "alias", text_setting{&s.model.alias}},
      {"model", "chat_template", text_setting{&s.model.chat_template}},
      {"server", "host", text_setting{&s.server.host}},
      {"server", "port", integer_setting{&s.server.port, 0, 65'535}},
      {"server", "threads", integer_setting{&s.server.threads, 1, limits::edge_threads_max}},
      {"server", "connections_max", integer_setting{&s.server.connections_max, 1, limits::connections_max}},
      {"server", "send_queue_kib_max", integer_setting{&s.server.send_queue_kib_max, 64, static_cast<int>(limits::send_queue_bytes_max >> 10)}},
      {"server", "echo_route", switch_setting{&s.server.echo_route}},
      {"server", "api_keys", list_setting{&s.server.api_keys}},
      {"server", "allowed_origins", list_setting{&s.server.allowed_origins}},
      {"cpu", "threads", integer_setting{&s.cpu.threads, 0, limits::cpu_threads_max}},
      {"cpu", "isa", text_setting{&s.cpu.isa}},
      {"memory", "limit", bytes_setting{&s.memory.limit, limits::memory_limit_max}},
      {"memory", "context_tokens", integer_setting{&s.memory.context_tokens, 0, limits::context_tokens_max}},
      {"memory", "context_overflow", choice_setting{&s.memory.context_overflow, {"error", "window", "compress"}}},
      {"memory", "keep_percent", integer_setting{&s.memory.keep_percent, 1, limits::keep_percent_max}},
      {"memory", "window_sinks", integer_setting{&s.memory.window_sinks, 0, limits::window_sink_tokens_max}},
      {"memory", "kv_mib", integer_setting{&s.memory.kv_mib, 0, limits::kv_mib_max}},
      {"memory", "kv_shards", integer_setting{&s.memory.kv_shards, 1, limits::kv_shards_max}},
      {"memory", "kv_keys", text_setting{&s.memory.kv_keys}},
      {"memory", "kv_values", text_setting{&s.memory.kv_values}},
      {"memory", "prefix_reuse", switch_setting{&s.memory.prefix_reuse}},
      {"memory", "partial_pages", switch_setting{&s.memory.partial_pages}},
      {"memory", "prompt_states", integer_setting{&s.memory.prompt_states, 0, static_cast<int>(limits::prompt_states_max)}},
      {"memory", "prefix_ttl_s", integer_setting{&s.memory.prefix_ttl_s, 0, static_cast<int>(limits::prefix_ttl_max.count())}},
      {"memory", "prefix_eviction", choice_setting{&s.memory.prefix_eviction, {"lru", "lfu"}}},
      {"memory", "pinned_percent", integer_setting{&s.memory.pinned_percent, 0, limits::pinned_percent_max}},
      {"memory", "host_tier_mib", integer_setting{&s.memory.host_tier_mib, 0, limits::tier_mib_max}},
      {"memory", "disk_tier_mib", integer_setting{&s.memory.disk_tier_mib, 0, limits::tier_mib_max}},
      {"memory", "tier_dir", text_setting{&s.memory.tier_dir}},
      {"memory", "tier_ttl_s", integer_setting{&s.memory.tier_ttl_s, 0, static_cast<int>(limits::tier_ttl_max.count())}},
      {"memory", "prefetch_ahead", integer_setting{&s.memory.prefetch_ahead, 0, limits::prefetch_ahead_max}},
      {"memory", "token_history", switch_setting{&s.memory.token_history}},
      {"memory", "token_history_mib", integer_setting{&s.memory.token_history_mib, 1, limits::token_history_mib_max}},
      {"memory", "persistence", switch_setting{&s.memory.persistence}},
      {"memory", "state_dir", text_setting{&s.memory.state_dir}},
      {"scheduler", "running_max", integer_setting{&s.scheduler.running_max, 1, limits::running_sequences_max}},
      {"scheduler", "waiting_max", integer_setting{&s.scheduler.waiting_max, 1, limits::waiting_requests_max}},
      {"scheduler", "step_tokens", integer_setting{&s.scheduler.step_tokens, 1, limits::step_tokens_max}},
      {"process", "exit_with_parent", switch_setting{&s.process.exit_with_parent}},
      {"process", "shutdown_ms", integer_setting{&s.process.shutdown_ms, 100, static_cast<int>(limits::shutdown_ms_max.count())}},
      {"process", "fault_injection", switch_setting{&s.process.fault_injection}},
  };
}

// The units of bytes_setting, largest first; each a power of two.
constexpr std::pair<std::string_view, int> byte_units[] = {{"TiB", 40}, {"GiB", 30}, {"MiB", 20}, {"KiB", 10}, {"B", 0}, {"", 0}};

std::optional<std::uint64_t> parse_bytes(std::string_view text, std::uint64_t high) {
  std::uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{})
    return std::nullopt;
  const auto rest = text.substr(static_cast<std::size_t>(end - text.data()));
  for (const auto& [unit, shift] : byte_units)
    if (rest == unit && value <= high >> shift)
      return value << shift;
  return std::nullopt;
}

std::string describe_bytes(std::uint64_t value) {
  for (const auto& [unit, shift] : byte_units)
    if (shift > 0 && value > 0 && value % (std::uint64_t{1} << shift) == 0)
      return std::to_string(value >> shift) + std::string(unit);
  return std::to_string(value);
}

std::string full_name(const setting_row& row) { return std::string(row.section) + "." + std::string(row.key); }

struct assign {
  const setting_row& row;
  std::string_view text;

  result<void> operator()(const integer_setting& target) const {
    int value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc{} || end != text.data() + text.size() || value < target.low || value > target.high)
      return fail(errc::invalid_argument, full_name(row) + ": '" + std::string(text) + "' is not a whole number from " +
                                              std::to_string(target.low) + " to " + std::to_string(target.high));
    *target.value = value;
    return {};
  }
  result<void> operator()(const bytes_setting& target) const {
    const auto value = parse_bytes(text, target.high);
    if (!value)
      return fail(errc::invalid_argument, full_name(row) + ": '" + std::string(text) + "' is not a whole number of bytes, KiB, MiB, " +
                                              "GiB or TiB, such as 600MiB, up to " + describe_bytes(target.high));
    *target.value = *value;
    return {};
  }
  result<void> operator()(const switch_setting& target) const {
    if (text == "true" || text == "on" || text == "yes")
      *target.value = true;
    else if (text == "false" || text == "off" || text == "no")
      *target.value = false;
    else
      return fail(errc::invalid_argument, full_name(row) + ": '" + std::string(text) + "' is neither true nor false");
    return {};
  }
  result<void> operator()(const text_setting& target) const {
    *target.value = std::string(text);
    return {};
  }
  result<void> operator()(const choice_setting& target) const {
    if (std::find(target.allowed.begin(), target.allowed.end(), text) == target.allowed.end()) {
      std::string all;
      for (const auto name : target.allowed)
        all += (all.empty() ? "" : ", ") + std::string(name);
      return fail(errc::invalid_argument, full_name(row) + ": '" + std::string(text) + "' is none of " + all);
    }
    *target.value = std::string(text);
    return {};
  }
  result<void> operator()(const list_setting& target) const {
    if (!text.empty() && text.find_first_not_of(',') == std::string_view::npos)
      return fail(errc::invalid_argument, full_name(row) + ": '" + std::string(text) + "' is a list of nothing");
    target.value->clear();
    for (std::size_t begin = 0; begin <= text.size();) {
      const auto end = std::min(text.find(',', begin), text.size());
      if (end > begin)
        target.value->emplace_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
    return {};
  }
};

result<void> set(std::vector<setting_row>& rows, std::string_view section, std::string_view key, std::string_view text) {
  for (const auto& row : rows)
    if (row.section == section && row.key == key)
      return std::visit(assign{row, text}, row.target);
  return fail(errc::invalid_argument, "unknown setting '" + std::string(section) + "." + std::string(key) + "'");
}

// A value, or a list as one value with commas.
std::optional<std::string> text_of(const YAML::Node& node) {
  if (node.IsScalar())
    return node.Scalar();
  if (!node.IsSequence())
    return std::nullopt;
  std::string out;
  for (const auto& item : node) {
    if (!item.IsScalar())
      return std::nullopt;
    out += (out.empty() ? "" : ",") + item.Scalar();
  }
  return out;
}

// "TROUPE_" and the section and key in capitals.
std::string environment_name(std::string_view section, std::string_view key) {
  std::string name = "TROUPE_" + std::string(section) + "_" + std::string(key);
  for (char& c : name)
    if (c >= 'a' && c <= 'z')
      c = static_cast<char>(c - 'a' + 'A');
  return name;
}

// A misspelt name is an error where it is plainly meant for us: TROUPE_, a section, and no key of that section.
result<void> check_environment(const std::vector<setting_row>& rows) {
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view line(*entry);
    const auto name = line.substr(0, line.find('='));
    bool ours = false, known = false;
    for (const auto& row : rows) {
      const auto prefix = environment_name(row.section, "");
      ours = ours || (name.size() > prefix.size() && name.substr(0, prefix.size()) == prefix);
      known = known || name == environment_name(row.section, row.key);
    }
    if (ours && !known)
      return fail(errc::invalid_argument, "environment " + std::string(name) + ": there is no such setting");
  }
  return {};
}

} // namespace

result<void> apply_yaml(settings& s, std::string_view text) {
  auto rows = rows_of(s);
  try {
    const YAML::Node root = YAML::Load(std::string(text));
    if (root.IsNull())
      return {};
    if (!root.IsMap())
      return fail(errc::invalid_argument, "settings: the top level is not a map of sections");
    for (const auto& section : root) {
      const auto name = section.first.as<std::string>();
      if (!section.second.IsMap())
        return fail(errc::invalid_argument, "settings: section '" + name + "' is not a map");
      for (const auto& entry : section.second) {
        const auto key = entry.first.as<std::string>();
        const auto value = text_of(entry.second);
        if (!value)
          return fail(errc::invalid_argument, "line " + std::to_string(entry.first.Mark().line + 1) + ": " + name + "." + key +
                                                  ": neither a value nor a list of values");
        if (auto done = set(rows, name, key, *value); !done)
          return fail(done.fault().code,
                      "line " + std::to_string(entry.first.Mark().line + 1) + ": " + done.fault().message);
      }
    }
    return {};
  } catch (const YAML::Exception& e) {
    return fail(errc::invalid_argument, "settings: line " + std::to_string(e.mark.line + 1) + ": " + e.msg);
  }
}

result<void> apply_override(settings& s, std::string_view assignment) {
  const auto equals = assignment.find('=');
  const auto dot = assignment.find('.');
  if (equals == std::string_view::npos || dot == std::string_view::npos || dot > equals)
    return fail(errc::invalid_argument, "'" + std::string(assignment) + "' is not section.key=value");
  auto rows = rows_of(s);
  return set(rows, assignment.substr(0, dot), assignment.substr(dot + 1, equals - dot - 1), assignment.substr(equals + 1));
}

result<void> apply_environment(settings& s) {
  auto rows = rows_of(s);
  if (auto known = check_environment(rows); !known)
    return known.fault();
  for (const auto& row : rows) {
    const auto name = environment_name(row.section, row.key);
    const char* text = std::getenv(name.c_str());
    if (text == nullptr)
      continue;
    if (auto done = std::visit(assign{row, text}, row.target); !done)
      return fail(done.fault().code, "environment " + name + ": " + done.fault().message);
  }
  return {};
}

std::string describe(const settings& s) {
  settings copy = s;
  std::string out;
  for (const auto& row : rows_of(copy)) {
    out += full_name(row) + "=";
    if (const auto* i = std::get_if<integer_setting>(&row.target))
      out += std::to_string(*i->value);
    else if (const auto* n = std::get_if<bytes_setting>(&row.target))
      out += describe_bytes(*n->value);
    else if (const auto* b = std::get_if<switch_setting>(&row.target))
      out += *b->value ? "true" : "false";
    else if (const auto* t = std::get_if<text_setting>(&row.target))
      out += *t->value;
    else if (const auto* c = std::get_if<choice_setting>(&row.target))
      out += *c->value;
    else
      for (const auto& item : *std::get<list_setting>(row.target).value)
        out += (out.back() == '=' ? "" : ",") + item;
    out += "\n";
  }
  return out;
}

} // namespace troupe
