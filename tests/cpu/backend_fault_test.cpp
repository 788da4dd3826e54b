// What the backend answers to plans that break the contract, to spoilt weights and to impossible settings.
#include <doctest/doctest.h>

#include <cstring>
#include <limits>

#include "cpu/isa.hpp"
#include "tests/cpu/backend_scene.hpp"

using namespace troupe;
using namespace troupe::tests;

namespace {

constexpr std::uint64_t seed = 5;

struct fault_case {
  const char* name;
  sequence_step step;
};

std::vector<fault_case> broken_steps() {
  const auto good = [] { return backend_scene::step(99, {1, 2, 3}, 0, backend_scene::pages(0, 1)); };
  std::vector<fault_case> out;
  const auto add = [&](const char* name, auto change) {
    auto s = good();
    change(s);
    out.push_back({name, s});
  };
  add("no tokens", [](auto& s) { s.tokens.clear(); });
  add("a negative token", [](auto& s) { s.tokens[1] = -1; });
  add("a token beyond the vocabulary", [](auto& s) { s.tokens[2] = 320; });
  add("a negative position", [](auto& s) { s.position = -1; });
  add("a position beyond the page table", [](auto& s) { s.position = 14; });
  add("the highest position", [](auto& s) { s.position = std::numeric_limits<std::int32_t>::max(); });
  add("no page table", [](auto& s) { s.pages = nullptr; });
  add("an empty page table", [](auto& s) { s.pages = std::make_shared<page_table>(); });
  add("a page beyond the pool", [](auto& s) { s.pages = backend_scene::pages(96, 1); });
  add("no sampling parameters", [](auto& s) { s.sampling = nullptr; });
  return out;
}

} // namespace

TEST_CASE("a sequence that breaks the contract gets its fault, and the others their tokens as if it were not there") {
  const auto model = make_random_model(architecture::qwen3, weight_type::q4_0, seed);
  backend_scene clean(model.weights, 2), scene(model.weights, 2);
  const auto sound = [&](std::uint64_t n) {
    return backend_scene::step(n, random_tokens(n, 20, 320), 0, backend_scene::pages(static_cast<page_id>(10 + 2 * n), 2));
  };
  clean.run({sound(1), sound(2)});
  for (const auto& c : broken_steps()) {
    CAPTURE(c.name);
    const auto result = scene.run({sound(1), c.step, sound(2)});
    REQUIRE(result.sequences.size() == 3);
    REQUIRE(result.sequences[1].fault);
    CHECK(result.sequences[1].fault->code == errc::invalid_argument);
    CHECK_FALSE(result.sequences[1].fault->message.empty());
    CHECK(result.sequences[1].id.number == 99);
    CHECK_FALSE(result.sequences[1].token);
    for (std::uint64_t n : {1u, 2u}) {
      CHECK_FALSE(result.sequences[n == 1 ? 0 : 2].fault);
      CHECK(scene.logits(n) == clean.logits(n));
    }
    const auto alone = scene.run({c.step});
    CHECK(alone.sequences[0].fault);
  }
}

TEST_CASE("a plan that cannot be run at all fails as a whole and the next one runs") {
  const auto model = make_random_model(architecture::qwen3, weight_type::f16, seed);
  cpu_options options;
  options.step_tokens_max = 32;
  backend_scene scene(model.weights, 2, options);
  step_plan large;
  large.sequences.push_back(backend_scene::step(1, random_tokens(1, 33, 320), 0, backend_scene::pages(0, 3)));
  auto result = scene.device().run(large);
  REQUIRE_FALSE(result);
  CHECK(result.fault().code == errc::too_large);
  step_plan copies;
  copies.copies.push_back({0, 96});
  auto copied = scene.device().run(copies);
  REQUIRE_FALSE(copied);
  CHECK(copied.fault().code == errc::invalid_argument);
  const auto empty = scene.device().run(step_plan{});
  REQUIRE(empty);
  CHECK(empty->sequences.empty());
  CHECK(scene.run({backend_scene::step(1, random_tokens(1, 32, 320), 0, backend_scene::pages(0, 2))}).sequences[0].token);
}

TEST_CASE("logits that are no number fail their own sequence alone") {
  auto model = make_random_model(architecture::qwen3, weight_type::f32, seed);
  // One token's embedding is spoilt, in a copy of the table.
  const auto& table = model.weights.token_embedding;
  std::vector<std::byte> spoilt(table.data, table.data + table.bytes());
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(spoilt.data() + 7 * table.row_bytes(), &nan, sizeof nan);
  model.weights.token_embedding.data = spoilt.data();
  backend_scene scene(model.weights, 2);
  const auto result = scene.run({backend_scene::step(1, {1, 2, 3}, 0, backend_scene::pages(0, 1)),
                                 backend_scene::step(2, {1, 7, 3}, 0, backend_scene::pages(1, 1)),
                                 backend_scene::step(3, {1, 2, 3}, 0, backend_scene::pages(2, 1))});
  REQUIRE(result.sequences[1].fault);
  CHECK(result.sequences[1].fault->code == errc::device_failed);
  CHECK_FALSE(result.sequences[1].token);
  REQUIRE(result.sequences[0].token);
  REQUIRE(result.sequences[2].token);
  CHECK(scene.logits(1) == scene.logits(3));
  // The spoilt pages serve the next owner.
  const auto next = scene.run({backend_scene::step(4, {1, 2, 3}, 0, backend_scene::pages(1, 1))});
  REQUIRE(next.sequences[0].token);
  CHECK(scene.logits(4) == scene.logits(1));
}

TEST_CASE("a number that is none is not hidden by the type of keys and values") {
  auto model = make_random_model(architecture::qwen3, weight_type::f32, seed);
  const auto& table = model.weights.token_embedding;
  std::vector<std::byte> spoilt(table.data, table.data + table.bytes());
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(spoilt.data() + 7 * table.row_bytes(), &nan, sizeof nan);
  model.weights.token_embedding.data = spoilt.data();
  for (const kv_type type : kv_types_all) {
    CAPTURE(name_of(type));
    cpu_options options;
    options.kv = {type, type};
    backend_scene scene(model.weights, 2, options);
    const auto result = scene.run({backend_scene::step(1, {1, 7, 3}, 0, backend_scene::pages(1, 1))});
    REQUIRE(result.sequences[0].fault);
    CHECK(result.sequences[0].fault->code == errc::device_failed);
  }
}

TEST_CASE("tokens beyond the usable vocabulary are never chosen") {
  const auto model = make_random_model(architecture::qwen3, weight_type::f16, seed);
  cpu_options options;
  options.usable_vocabulary = 3;
  backend_scene scene(model.weights, 2, options);
  for (std::uint64_t n = 0; n < 20; ++n) {
    const auto result = scene.run({backend_scene::step(n, random_tokens(n, 5, 320), 0, backend_scene::pages(0, 1))});
    REQUIRE(result.sequences[0].token);
    CHECK(result.sequences[0].token->token < 3);
  }
}

TEST_CASE("impossible settings are refused with a line that names them") {
  const auto model = make_random_model(architecture::qwen3, weight_type::f16, seed);
  cpu_options options;
  options.isa = "sse9";
  CHECK(make_cpu_backend(model.weights, options).fault().code == errc::unsupported);
  CHECK(make_cpu_backend(model.weights, options).fault().message.find("sse9") != std::string::npos);
  if (!cpu::machine_has(cpu::isa::avx512)) {
    options.isa = "avx512";
    CHECK(make_cpu_backend(model.weights, options).fault().code == errc::unsupported);
  }
  options.isa = "";
  options.pages = std::numeric_limits<std::uint32_t>::max();
  options.step_tokens_max = 0;
  CHECK(make_cpu_backend(model.weights, options).fault().code == errc::invalid_argument);
  options.step_tokens_max = 8;
  options.pages = 0;
  CHECK(make_cpu_backend(model.weights, options).fault().code == errc::invalid_argument);
  options.pages = 4;
  auto lying = model.weights;
  lying.layers[1].down.columns = 256;
  CHECK(make_cpu_backend(lying, options).fault().code == errc::model_format);
  CHECK(make_cpu_backend(lying, options).fault().message.find("layer 1") != std::string::npos);
  random_model_sizes odd;
  odd.heads = 16;
  odd.head_dim = 48;
  const auto other = make_random_model(architecture::qwen3, weight_type::f16, seed, odd);
  options.kv.values = kv_type::int4;
  CHECK(make_cpu_backend(other.weights, options).fault().code == errc::unsupported);
  CHECK(make_cpu_backend(other.weights, options).fault().message.find("memory.kv_values: int4 needs") == 0);
}

TEST_CASE("the shape says what was made, in one line") {
  const auto model = make_random_model(architecture::qwen3, weight_type::q8_0, seed);
  std::vector<std::string> lines;
  cpu_options options;
  options.threads = 2;
  options.pages = 12;
  options.isa = "plain";
  options.log = [&](log_level, std::string_view line) { lines.emplace_back(line); };
  const auto device = std::move(*make_cpu_backend(model.weights, options));
  const auto s = device->shape();
  CHECK(s.pages == 12);
  CHECK(s.page_bytes == 2u * 2 * 2 * 16 * 64 * 2); // layers, keys and values, KV heads, tokens, halves
  CHECK(s.vocabulary == 320);
  CHECK(s.step_tokens_max == 512);
  CHECK(s.weight_bytes > model.weights.output.bytes());
  CHECK(s.description == "cpu plain, 2 threads");
  CHECK(lines.back() == "running on cpu plain, 2 threads");
  options.kv = {kv_type::int8, kv_type::int4};
  const auto small = std::move(*make_cpu_backend(model.weights, options));
  CHECK(small->shape().page_bytes == 2u * 2 * 16 * (64 + 4 + 32 + 8)); // codes and scales of a key, of a value
}
