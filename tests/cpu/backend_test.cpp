// The backend against the reference forward pass, and its promise that a result depends on the tokens alone.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <vector>

#include "cpu/isa.hpp"
#include "model/forward.hpp"
#include "tests/cpu/backend_scene.hpp"

using namespace troupe;
using namespace troupe::tests;

namespace {

constexpr std::uint64_t seed = 77;
constexpr architecture architectures[] = {architecture::qwen3, architecture::qwen2, architecture::llama};
constexpr weight_type types[] = {weight_type::f32,  weight_type::f16,  weight_type::bf16, weight_type::q8_0,
                                 weight_type::q4_0, weight_type::q4_1, weight_type::q5_0, weight_type::q5_1,
                                 weight_type::q4_k, weight_type::q5_k, weight_type::q6_k};

// A number that is kept moves by half a step of its type; attention averages, and a block adds no more than the stream holds, so
// the logits of calm models move by no more than their values do.
double logits_move(kv_type type) {
  switch (type) {
  case kv_type::f16: return 2e-3;
  case kv_type::bf16: return 4e-3;
  case kv_type::int8: return 1e-2;
  case kv_type::int4: return 1e-1;
  }
  return 0;
}

random_model_sizes sizes_for(architecture arch) {
  random_model_sizes s;
  s.heads = arch == architecture::llama ? 12 : 4; // GQA of 3 and of 2 (head sizes of 64)
  s.kv_heads = arch == architecture::llama ? 4 : 2;
  s.rope.adjacent_pairs = arch == architecture::llama;
  s.tied_output = arch == architecture::qwen2;
  return s;
}

// The same model with its blocks' norms scaled down, so that a block adds no more than the residual stream holds, as in trained
// models: in random_model's own, each layer multiplies relative errors several times over, and rounding activations to 8 bits
// alone, in exact arithmetic, moves the logits by 1 to 4 in 100. Keeps the norms alive.
class calm_model {
public:
  calm_model(architecture arch, weight_type type) : model_(make_random_model(arch, type, seed, sizes_for(arch))) {
    for (auto& layer : model_.weights.layers)
      for (auto* norm : {&layer.attention_norm, &layer.ffn_norm}) {
        auto& scaled = norms_.emplace_back(static_cast<std::size_t>(norm->columns));
        dequantize_row(norm->type, norm->data, scaled.data(), norm->columns);
        for (float& w : scaled)
          w *= 0.125f;
        norm->data = reinterpret_cast<const std::byte*>(scaled.data());
      }
  }
  const model_weights& weights() const { return model_.weights; }

private:
  random_model model_;
  std::deque<std::vector<float>> norms_;
};

// The logits of a sequence alone on one thread against those of every other way to compute it.
void check_same_bits(const model_weights& weights, const cpu_options& options) {
  const int vocabulary = weights.shape.vocabulary;
  const auto tokens = random_tokens(seed + 1, 60, vocabulary);
  const auto part = [&](int begin, int end) { return std::vector<token_id>(tokens.begin() + begin, tokens.begin() + end); };

  backend_scene one(weights, 1, options);
  const auto pages = backend_scene::pages(0, 4);
  one.run({backend_scene::step(1, tokens, 0, pages)});
  const auto expected = one.logits(1);

  for (int threads : {1, 2, 3}) {
    backend_scene scene(weights, threads, options);
    // whole, after other work has been in the pages
    scene.run({backend_scene::step(9, random_tokens(3, 60, vocabulary), 0, pages)});
    scene.run({backend_scene::step(1, tokens, 0, pages)});
    CHECK(same_bits(scene.logits(1), expected));
    // token by token at the end, odd cuts before
    int at = 0;
    for (int count : {1, 13, 3, 16, 20, 1, 2, 1, 3}) {
      scene.run({backend_scene::step(2, part(at, at + count), at, backend_scene::pages(8, 4))});
      at += count;
    }
    REQUIRE(at == 60);
    CHECK(same_bits(scene.logits(2), expected));
    // the last token within a batch of 8 others, decoding and prefilling
    scene.run({backend_scene::step(3, part(0, 59), 0, backend_scene::pages(16, 4))});
    std::vector<sequence_step> batch;
    for (std::uint64_t other = 0; other < 7; ++other)
      batch.push_back(backend_scene::step(10 + other, random_tokens(other, other % 2 ? 1 : 25, vocabulary), 0,
                                          backend_scene::pages(24 + 2 * static_cast<page_id>(other), 2)));
    batch.insert(batch.begin() + 3, backend_scene::step(3, part(59, 60), 59, backend_scene::pages(16, 4)));
    scene.run(batch);
    CHECK(same_bits(scene.logits(3), expected));
    // the first 48 tokens on the pages of sequence 1, the rest on own ones
    auto shared = std::make_shared<page_table>(*backend_scene::pages(0, 3));
    shared->push_back(60);
    scene.run({backend_scene::step(4, part(48, 60), 48, shared)});
    CHECK(same_bits(scene.logits(4), expected));
    // a copied partial page
    auto copied = std::make_shared<page_table>(*backend_scene::pages(0, 3));
    copied->push_back(61);
    scene.run({backend_scene::step(5, part(56, 60), 56, copied)}, {{3, 61}});
    CHECK(same_bits(scene.logits(5), expected));
  }
}

} // namespace

TEST_CASE("logits agree with the reference on every architecture and weight type") {
  INFO("seed ", seed);
  for (const architecture arch : architectures)
    for (const weight_type type : types) {
      const calm_model model(arch, type);
      const auto tokens = random_tokens(seed, 45, model.weights().shape.vocabulary);
      backend_scene scene(model.weights(), 2);
      const auto pages = backend_scene::pages(5, 4);
      scene.run({backend_scene::step(1, {tokens.begin(), tokens.begin() + 40}, 0, pages)});
      scene.run({backend_scene::step(1, {tokens.begin() + 40, tokens.begin() + 41}, 40, pages)});
      scene.run({backend_scene::step(1, {tokens.begin() + 41, tokens.end()}, 41, pages)});

      reference_model reference(model.weights());
      const bool plain = info_of(type).block_weights == 1;
      CAPTURE(name_of(arch));
      CAPTURE(info_of(type).name);
      std::size_t fed = 0;
      for (std::size_t i = 0; i < 3; ++i) {
        const std::size_t upto = i == 0 ? 40 : i == 1 ? 41 : 45;
        const auto expected = reference.feed(std::span(tokens).subspan(fed, upto - fed));
        fed = upto;
        const double error = relative_error(scene.all_logits(1)[i], expected);
        CHECK(error <= (plain ? 2e-3 : 2e-2));
      }
    }
}

TEST_CASE("the plain kernels agree with the reference too") {
  for (const weight_type type : {weight_type::f32, weight_type::q4_k, weight_type::bf16}) {
    const calm_model model(architecture::qwen3, type);
    const auto tokens = random_tokens(seed, 20, model.weights().shape.vocabulary);
    cpu_options options;
    options.isa = "plain";
    backend_scene scene(model.weights(), 2, options);
    scene.run({backend_scene::step(1, tokens, 0, backend_scene::pages(0, 2))});
    reference_model reference(model.weights());
    CHECK(relative_error(scene.logits(1), reference.feed(tokens)) <= (type == weight_type::q4_k ? 2e-2 : 2e-3));
  }
}

TEST_CASE(
    "a sequence's logits have the same bits alone, in a batch, in any cut, on any number of threads and on shared pages") {
  for (const weight_type type : types)
    for (const architecture arch : {architecture::qwen3, architecture::llama}) {
      CAPTURE(info_of(type).name);
      CAPTURE(name_of(arch));
      check_same_bits(make_random_model(arch, type, seed, sizes_for(arch)).weights, {});
    }
}

TEST_CASE("so they have with every type of keys and values, on every instruction set") {
  for (const char* isa : {"plain", "avx2", "avx512"}) {
    if (!cpu::machine_has(*cpu::isa_named(isa)))
      continue;
    for (const kv_types kv : {kv_types{kv_type::bf16, kv_type::bf16}, {kv_type::int8, kv_type::int8},
                              {kv_type::int4, kv_type::int4}, {kv_type::int8, kv_type::int4}})
      for (const architecture arch : {architecture::qwen3, architecture::llama}) {
        CAPTURE(isa);
        CAPTURE(name_of(kv.keys));
        CAPTURE(name_of(kv.values));
        CAPTURE(name_of(arch));
        cpu_options options;
        options.isa = isa;
        options.kv = kv;
        check_same_bits(make_random_model(arch, weight_type::q8_0, seed, sizes_for(arch)).weights, options);
      }
  }
}

TEST_CASE("logits move little with the type of keys and values") {
  for (const architecture arch : architectures) {
    const calm_model model(arch, weight_type::f32);
    const auto tokens = random_tokens(seed, 45, model.weights().shape.vocabulary);
    reference_model reference(model.weights());
    const auto expected = reference.feed(tokens);
    for (const kv_type type : kv_types_all) {
      cpu_options options;
      options.kv = {type, type};
      backend_scene scene(model.weights(), 2, options);
      scene.run({backend_scene::step(1, tokens, 0, backend_scene::pages(5, 4))});
      CAPTURE(name_of(arch));
      CAPTURE(name_of(type));
      CHECK(relative_error(scene.logits(1), expected) <= logits_move(type));
    }
  }
}

TEST_CASE("more sampled rows than logits are computed at once are all answered") {
  const auto model = make_random_model(architecture::qwen3, weight_type::q8_0, seed);
  backend_scene scene(model.weights, 2);
  std::vector<sequence_step> batch;
  for (std::uint64_t i = 0; i < 70; ++i)
    batch.push_back(backend_scene::step(i, {static_cast<token_id>(i)}, 0, backend_scene::pages(static_cast<page_id>(i), 1)));
  const auto result = scene.run(batch);
  REQUIRE(result.sequences.size() == 70);
  for (std::uint64_t i = 0; i < 70; ++i) {
    CHECK(result.sequences[i].id.number == i);
    REQUIRE(result.sequences[i].token);
    const auto& row = scene.logits(i);
    CHECK(result.sequences[i].token->token == std::max_element(row.begin(), row.end()) - row.begin());
  }
  backend_scene alone(model.weights, 1);
  alone.run({backend_scene::step(66, {66}, 0, backend_scene::pages(0, 1))});
  CHECK(same_bits(alone.logits(66), scene.logits(66)));
}

TEST_CASE("a step that samples nothing still fills its pages") {
  const auto model = make_random_model(architecture::llama, weight_type::f16, seed, sizes_for(architecture::llama));
  const auto tokens = random_tokens(seed, 20, model.weights.shape.vocabulary);
  backend_scene whole(model.weights, 2), cut(model.weights, 2);
  const auto pages = backend_scene::pages(0, 2);
  whole.run({backend_scene::step(1, tokens, 0, pages)});
  auto silent = backend_scene::step(1, {tokens.begin(), tokens.begin() + 17}, 0, pages);
  silent.sample = false;
  silent.sampling = nullptr;
  const auto result = cut.run({silent});
  CHECK_FALSE(result.sequences[0].token);
  CHECK_FALSE(result.sequences[0].fault);
  CHECK(cut.rows_seen() == 0);
  cut.run({backend_scene::step(1, {tokens.begin() + 17, tokens.end()}, 17, pages)});
  CHECK(same_bits(cut.logits(1), whole.logits(1)));
}
