#include "golden_cases.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include <doctest/doctest.h>
#include <simdjson.h>

#include "model/weight_types.hpp"

namespace troupe::tests {
namespace {

using simdjson::dom::element;

std::filesystem::path in_source(std::string_view name) { return std::filesystem::path(TROUPE_SOURCE_DIR) / name; }

// simdjson throws on what is missing or of another type; the tests' runner reports it.
template <class Read>
auto read_cases(const std::filesystem::path& path, Read&& read) {
  simdjson::dom::parser parser;
  const element document = parser.load(path.string());
  std::vector<decltype(read(document))> out;
  for (const element c : document["cases"].get_array())
    out.push_back(read(c));
  if (out.empty())
    throw std::runtime_error(path.string() + " has no cases");
  return out;
}

int integer(const element& e) { return static_cast<int>(e.get_int64().value()); }

bool has(const element& e, std::string_view key) { return e[key].error() == simdjson::SUCCESS; }

std::vector<double> numbers(const element& e) {
  std::vector<double> out;
  for (const element x : e.get_array())
    out.push_back(x.get_double().value());
  return out;
}

std::vector<token_id> tokens(const element& e) {
  std::vector<token_id> out;
  for (const element x : e.get_array())
    out.push_back(integer(x));
  return out;
}

architecture architecture_named(std::string_view name) {
  for (const auto a : {architecture::qwen3, architecture::qwen2, architecture::llama})
    if (name_of(a) == name)
      return a;
  throw std::runtime_error("no architecture " + std::string(name));
}

rope_scaling scaling_named(std::string_view name) {
  if (name == "none")
    return rope_scaling::none;
  if (name == "linear")
    return rope_scaling::linear;
  if (name == "yarn")
    return rope_scaling::yarn;
  if (name == "llama3")
    return rope_scaling::llama3;
  throw std::runtime_error("no rope scaling " + std::string(name));
}

rope_settings rope_of(const element& e) {
  rope_settings rope;
  rope.scaling = scaling_named(e["scaling"].get_string());
  rope.adjacent_pairs = e["adjacent_pairs"].get_bool();
  const auto set = [&](const char* key, float& field) {
    if (has(e, key))
      field = static_cast<float>(e[key].get_double().value());
  };
  set("base", rope.base);
  set("factor", rope.factor);
  set("low_frequency_factor", rope.low_frequency_factor);
  set("high_frequency_factor", rope.high_frequency_factor);
  set("attention_factor", rope.attention_factor);
  if (has(e, "original_context"))
    rope.original_context = integer(e["original_context"]);
  if (has(e, "divisors"))
    for (const double d : numbers(e["divisors"]))
      rope.divisors.push_back(static_cast<float>(d));
  return rope;
}

random_case read_random_case(const element& e) {
  random_case c;
  const std::string_view arch = e["arch"];
  const std::string_view type = e["type"];
  const std::string_view scaling = e["rope"]["scaling"];
  c.name = std::string(arch) + " " + std::string(type) + " " + std::string(scaling);
  c.arch = architecture_named(arch);
  c.type = weight_type_named(type).value();
  c.seed = e["seed"].get_uint64();
  c.sizes = {.layers = integer(e["layers"]),
             .hidden = integer(e["hidden"]),
             .heads = integer(e["heads"]),
             .kv_heads = integer(e["kv_heads"]),
             .head_dim = integer(e["head_dim"]),
             .ffn = integer(e["ffn"]),
             .vocabulary = integer(e["vocabulary"]),
             .tied_output = e["tied_output"].get_bool(),
             .rope = rope_of(e["rope"])};
  c.tokens = tokens(e["tokens"]);
  for (const element row : e["rows"].get_array())
    c.rows.push_back({integer(row["after"]), numbers(row["logits"])});
  return c;
}

greedy_case read_tiny_case(const element& e) {
  greedy_case c;
  c.prompt = std::string(e["prompt"].get_string().value());
  c.ids = tokens(e["ids"]);
  c.continuation = tokens(e["greedy32"]);
  c.margin_min = e["min_margin"].get_double();
  if (c.continuation.at(0) != integer(e["argmax"]))
    throw std::runtime_error("argmax is not the first greedy token of: " + c.prompt);
  if (has(e, "logits_first8")) {
    c.first_logits = numbers(e["logits_first8"]);
    c.highest_logit = e["logit_max"].get_double();
  }
  return c;
}

greedy_case read_smollm2_case(const element& e) {
  greedy_case c;
  c.prompt = std::string(e["prompt"].get_string().value());
  c.ids = tokens(e["ids"]);
  c.continuation = tokens(e["continuation"]);
  c.margins = numbers(e["margins"]);
  c.margin_min = *std::min_element(c.margins.begin(), c.margins.end());
  c.first_logits = numbers(e["first_logits"]);
  c.highest_logit = e["highest_logit"].get_double();
  return c;
}

template <class T>
std::vector<double> centred(const std::vector<T>& x, std::size_t count) {
  std::vector<double> out(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(count));
  double mean = 0;
  for (const double v : out)
    mean += v / static_cast<double>(count);
  for (double& v : out)
    v -= mean;
  return out;
}

} // namespace

std::vector<random_case> read_random_cases() { return read_cases(in_source("tests/golden/logits.json"), read_random_case); }
std::vector<greedy_case> read_tiny_cases() { return read_cases(in_source("models/tiny/golden.json"), read_tiny_case); }
std::vector<greedy_case> read_smollm2_cases() { return read_cases(in_source("tests/golden/smollm2.json"), read_smollm2_case); }

double relative_error(const random_case& c, logit_source& source) {
  double worst = 0;
  for (const auto& row : c.rows) {
    source.restart();
    const auto logits = source.feed(std::span(c.tokens).first(static_cast<std::size_t>(row.after)));
    const auto got = centred(logits, row.logits.size());
    const auto expected = centred(row.logits, row.logits.size());
    double difference = 0;
    double size = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      difference += (got[i] - expected[i]) * (got[i] - expected[i]);
      size += expected[i] * expected[i];
    }
    const double error = std::sqrt(difference / size);
    worst = error <= worst ? worst : error; // a NaN wins
  }
  return worst;
}

void check_greedy(const greedy_case& c, logit_source& source, const greedy_tolerance& tolerance) {
  CAPTURE(c.prompt);
  source.restart();
  auto logits = source.feed(c.ids);
  for (std::size_t i = 0; i < c.continuation.size(); ++i) {
    const auto best = std::max_element(logits.begin(), logits.end());
    if (i == 0)
      for (std::size_t j = 0; j < c.first_logits.size(); ++j) {
        CAPTURE(j);
        const double got = static_cast<double>(logits[j] - *best);
        CHECK(std::abs(got - (c.first_logits[j] - c.highest_logit)) <= tolerance.logits);
      }
    const auto chosen = static_cast<token_id>(best - logits.begin());
    if (chosen != c.continuation[i]) {
      const double gap = static_cast<double>(*best - logits[static_cast<std::size_t>(c.continuation[i])]);
      const double margin = c.margins.empty() ? c.margin_min : c.margins[i];
      CAPTURE(i);
      CAPTURE(chosen);
      CAPTURE(c.continuation[i]);
      CHECK(gap < tolerance.near_tie);
      CHECK(margin < tolerance.near_tie);
      MESSAGE("near-tie at token " << i << ": " << chosen << " before " << c.continuation[i] << " by " << gap << ", golden margin "
                                   << margin);
    }
    if (i + 1 < c.continuation.size())
      logits = source.feed(std::span(&c.continuation[i], 1));
  }
}

std::optional<std::filesystem::path> smollm2_file() {
  if (const char* named = std::getenv("TROUPE_SMOLLM2"); named && *named)
    return std::filesystem::path(named);
  std::filesystem::path cache;
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg && *xdg)
    cache = xdg;
  else if (const char* home = std::getenv("HOME"); home && *home)
    cache = std::filesystem::path(home) / ".cache";
  else
    return std::nullopt;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(cache / "troupe", none)) {
    const auto name = entry.path().filename().string();
    if (name.starts_with("SmolLM2-135M-Instruct") && name.ends_with(".gguf"))
      return entry.path();
  }
  return std::nullopt;
}

} // namespace troupe::tests
