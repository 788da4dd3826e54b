#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>
#include <vector>

#include "base/random.hpp"
#include "cpu/attention_units.hpp"
#include "cpu/kv_store.hpp"
#include "cpu/thread_team.hpp"
#include "cpu/vector_kernels.hpp"
#include "tests/support/isas_here.hpp"

using namespace troupe;
using namespace troupe::cpu;
using testing::isas_here;

namespace {

constexpr std::uint64_t seed = 411;

float draw(std::uint64_t key, std::uint64_t i) {
  return static_cast<float>(uniform_at(seed + key, i) * 4 - 2);
}

hyperparameters shape_of(int heads, int kv_heads, int head_dim) {
  hyperparameters s;
  s.layers = 2;
  s.heads = heads;
  s.kv_heads = kv_heads;
  s.head_dim = head_dim;
  return s;
}

constexpr kv_types halves = {kv_type::f16, kv_type::f16};

// A pool in which one sequence's tokens lie on scattered pages, and everything that it did not write is NaN.
struct scene {
  isa target; // whose pages these are: the order of nibbles is an instruction set's own
  hyperparameters shape;
  kv_store kv;
  std::shared_ptr<page_table> pages = std::make_shared<page_table>();
  std::vector<float> keys, values;             // [position][kv head][head_dim], as the types keep them
  std::vector<float> given_keys, given_values; // likewise, as they were stored

  scene(isa pages_of, const hyperparameters& s, int length, kv_types types = halves)
      : target(pages_of), shape(s), kv(std::move(*kv_store::create(s, types, page_count(length)))) {
    std::memset(kv.keys(0, 0), 0xff, kv.pages() * kv.page_bytes());
    for (std::uint32_t p = 0; p < kv.pages(); ++p)
      pages->push_back((p * 7 + 3) % kv.pages());
    const auto d = static_cast<std::size_t>(s.head_dim);
    const auto write = [&](kv_type type, std::byte* to, std::uint64_t key, int position, int head, std::vector<float>& given,
                           std::vector<float>& kept) {
      for (std::size_t i = 0; i < d; ++i)
        given.push_back(draw(key, (static_cast<std::uint64_t>(position) * 64 + static_cast<std::uint64_t>(head)) * 512 + i));
      kept.resize(given.size());
      to += (*pages)[static_cast<std::size_t>(position / limits::page_tokens)] * kv.page_bytes();
      const auto& rows = vector_kernels_for(target).rows_of(type);
      rows.store(to, position % limits::page_tokens, &given[given.size() - d], s.head_dim);
      rows.load(to, position % limits::page_tokens, &kept[kept.size() - d], s.head_dim);
    };
    for (int position = 0; position < length; ++position)
      for (int h = 0; h < s.kv_heads; ++h) {
        write(types.keys, kv.keys(1, h), 1, position, h, given_keys, keys);
        write(types.values, kv.values(1, h), 2, position, h, given_values, values);
      }
  }
  // A prime-like count, so that the scattering above is a permutation.
  static std::uint32_t page_count(int length) {
    std::uint32_t n = static_cast<std::uint32_t>(length / limits::page_tokens) + 2;
    while (n % 7 == 0)
      ++n;
    return n;
  }

  // Over positions 0 .. position but for [hidden_begin, hidden_end).
  std::vector<double> expected(const float* q, int head, int position, int hidden_begin = 0, int hidden_end = 0) const {
    return attention_over(keys, values, q, head, position, hidden_begin, hidden_end);
  }
  std::vector<double> attention_over(const std::vector<float>& k, const std::vector<float>& v, const float* q, int head,
                                     int position, int hidden_begin = 0, int hidden_end = 0) const {
    const auto d = static_cast<std::size_t>(shape.head_dim);
    const auto kv_head = static_cast<std::size_t>(head / (shape.heads / shape.kv_heads));
    const auto kv_heads = static_cast<std::size_t>(shape.kv_heads);
    std::vector<double> scores, out(d);
    double highest = -1e300, total = 0;
    for (std::size_t p = 0; p <= static_cast<std::size_t>(position); ++p) {
      double s = 0;
      for (std::size_t i = 0; i < d; ++i)
        s += static_cast<double>(q[i]) * k[(p * kv_heads + kv_head) * d + i];
      const bool hidden = static_cast<int>(p) >= hidden_begin && static_cast<int>(p) < hidden_end;
      scores.push_back(hidden ? -1e300 : s / std::sqrt(static_cast<double>(d)));
      highest = std::max(highest, scores.back());
    }
    for (double& s : scores)
      total += s = std::exp(s - highest);
    for (std::size_t p = 0; p < scores.size(); ++p)
      for (std::size_t i = 0; i < d; ++i)
        out[i] += scores[p] / total * v[(p * kv_heads + kv_head) * d + i];
    return out;
  }
};

std::vector<float> queries(const hyperparameters& s, int begin, int count) {
  const auto width = static_cast<std::uint64_t>(s.q_width());
  std::vector<float> q;
  for (std::uint64_t t = 0; t < static_cast<std::uint64_t>(count); ++t)
    for (std::uint64_t i = 0; i < width; ++i)
      q.push_back(draw(3, (static_cast<std::uint64_t>(begin) + t) * 65536 + i));
  return q;
}

// Attention of positions [begin, begin + count) of the scene's sequence, planned for and run by `threads`.
std::vector<float> attend(const scene& world, int begin, int count, int threads, bool only_last = false,
                          attention_window window = {}) {
  step_batch batch;
  sequence_step step;
  step.tokens.assign(static_cast<std::size_t>(count), 0);
  step.position = begin;
  step.pages = world.pages;
  step.window = window;
  step.sample = true;
  batch.sequences.push_back({&step, 0, 0, count});
  const auto q = queries(world.shape, begin, count);
  std::vector<float> out(q.size(), -99.0f);
  attention_units units;
  units.plan(batch, world.shape, threads, only_last);
  units.begin_layer();
  thread_team team(threads);
  const std::size_t floats = attention_units::scratch_floats(world.shape);
  std::vector<float> scratch(floats * static_cast<std::size_t>(threads));
  team.run([&](int thread) {
    team.share(units.count(), [&](int u) {
      units.compute(u, 1, {q.data(), world.shape.q_width(), nullptr, out.data()}, world.kv, vector_kernels_for(world.target),
                    scratch.data() + floats * static_cast<std::size_t>(thread));
    });
  });
  return out;
}

} // namespace

TEST_CASE("attention agrees with doubles for every head size and ratio, and never reads beyond the sequence") {
  struct sizes {
    int heads, kv_heads, head_dim, length;
  };
  for (isa target : isas_here())
    for (const sizes& c : {sizes{1, 1, 64, 70},
                           {2, 1, 128, 40},
                           {9, 3, 64, 33},
                           {8, 2, 80, 130},
                           {5, 1, 96, 65},
                           {6, 1, 64, 17},
                           {7, 1, 128, 16},
                           {16, 2, 64, 100},
                           {2, 2, 20, 50},
                           {2, 1, 256, 20},
                           {100, 1, 16, 20}}) {
      const scene world(target, shape_of(c.heads, c.kv_heads, c.head_dim), c.length);
      const auto q = queries(world.shape, 0, c.length);
      const auto out = attend(world, 0, c.length, 1);
      double worst = 0;
      for (int t = 0; t < c.length; ++t)
        for (int h = 0; h < c.heads; ++h) {
          const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(t) * world.shape.q_width() + h * c.head_dim;
          const auto expected = world.expected(q.data() + at, h, t);
          for (int i = 0; i < c.head_dim; ++i)
            worst = std::max(worst, std::abs(out[static_cast<std::size_t>(at + i)] - expected[static_cast<std::size_t>(i)]));
        }
      CAPTURE(name_of(target));
      CAPTURE(c.heads);
      CAPTURE(c.head_dim);
      CHECK(worst < 5e-6);
    }
}

TEST_CASE("a query's result has the same bits alone, in tiles, in any cut of the prompt and on any number of threads") {
  for (isa target : isas_here())
    for (kv_types types : {halves, kv_types{kv_type::bf16, kv_type::int8}, kv_types{kv_type::int8, kv_type::int4},
                           kv_types{kv_type::int4, kv_type::bf16}}) {
      const scene world(target, shape_of(6, 2, 64), 1300, types); // three chunks
      CAPTURE(name_of(target));
      CAPTURE(name_of(types.keys));
      const int begin = 990, count = 80; // crosses a chunk and several blocks
      const auto together = attend(world, begin, count, 1);
      const auto width = static_cast<std::size_t>(world.shape.q_width());
      for (int threads : {1, 2, 3})
        CHECK(std::memcmp(attend(world, begin, count, threads).data(), together.data(), together.size() * 4) == 0);
      for (int t : {0, 1, 33, 34, 35, 79}) {
        const auto alone = attend(world, begin + t, 1, 1);
        const auto split = attend(world, begin + t, 1, 3);
        CHECK(std::memcmp(alone.data(), together.data() + static_cast<std::size_t>(t) * width, width * 4) == 0);
        CHECK(std::memcmp(split.data(), alone.data(), width * 4) == 0);
      }
      const auto tail = attend(world, begin + 13, count - 13, 2);
      CHECK(std::memcmp(tail.data(), together.data() + 13 * width, tail.size() * 4) == 0);
    }
}

TEST_CASE("a long context agrees with doubles, whole and shared in chunks") {
  for (isa target : isas_here()) {
    const scene world(target, shape_of(4, 1, 128), 2100);
    const auto q = queries(world.shape, 2099, 1);
    for (int threads : {1, 4}) {
      const auto out = attend(world, 2099, 1, threads);
      for (int h = 0; h < 4; ++h) {
        const auto expected = world.expected(q.data() + h * 128, h, 2099);
        for (std::size_t i = 0; i < 128; ++i)
          CHECK(std::abs(out[static_cast<std::size_t>(h) * 128 + i] - expected[i]) < 5e-6);
      }
    }
  }
}

TEST_CASE("what a window hides from all rows is not read, whatever lies there, and each row agrees with doubles over what it sees") {
  const attention_window window{1, 3};
  for (isa target : isas_here())
    for (kv_types types : {halves, kv_types{kv_type::int8, kv_type::int4}}) {
      scene world(target, shape_of(6, 2, 64), 1300, types);
      const int begin = 1190, count = 40; // rows that see pages from 72, 73 or 74 on, and page 0
      const page_id spare = (static_cast<page_id>(world.pages->size()) - 1) * 7 + 3;
      for (std::size_t page = 1; page < 72; ++page)
        (*world.pages)[page] = spare % world.kv.pages(); // never written: it holds what is no number
      const auto q = queries(world.shape, begin, count);
      for (int threads : {1, 3}) {
        const auto out = attend(world, begin, count, threads, false, window);
        double worst = 0;
        for (int t = 0; t < count; ++t)
          for (int h = 0; h < 6; ++h) {
            const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(t) * world.shape.q_width() + h * 64;
            const int hidden_end = ((begin + t) / 16 - 2) * 16;
            const auto expected = world.expected(q.data() + at, h, begin + t, 16, hidden_end);
            for (int i = 0; i < 64; ++i)
              worst = std::max(worst, std::abs(out[static_cast<std::size_t>(at + i)] - expected[static_cast<std::size_t>(i)]));
          }
        CAPTURE(name_of(target));
        CHECK(worst < 5e-6);
      }
    }
}

TEST_CASE("asked for the last row alone, no other is written") {
  const scene world(isa::plain, shape_of(4, 2, 64), 100);
  const auto out = attend(world, 60, 40, 1, true);
  const auto all = attend(world, 60, 40, 1);
  const auto width = static_cast<std::size_t>(world.shape.q_width());
  CHECK(std::all_of(out.begin(), out.end() - static_cast<std::ptrdiff_t>(width), [](float v) { return v == -99.0f; }));
  CHECK(std::memcmp(out.data() + 39 * width, all.data() + 39 * width, width * 4) == 0);
}

// How far off an output may be where every key's number is off by `key` at most and every value's by `value`: a score moves by
// |q|_1 key / sqrt(d), so a weight by a factor of e^2 that at most, and the output by the spread of values times that.
TEST_CASE("every pair of types agrees with doubles over what it keeps, and nearly with doubles over what was given") {
  const auto step = [](kv_type t) { // half of it, of numbers from -2 to 2
    switch (t) {
    case kv_type::f16: return 2 * 0x1p-11;
    case kv_type::bf16: return 2 * 0x1p-8;
    case kv_type::int8: return 2.0 / 127 / 2;
    case kv_type::int4: return 4.0 / 15 / 2 * 1.02; // scale and offset are rounded outwards
    }
    return 0.0;
  };
  for (isa target : isas_here())
    for (const auto& [heads, kv_heads, head_dim] : {std::tuple{6, 2, 64}, {8, 2, 96}, {3, 1, 128}, {5, 1, 32}})
      for (kv_type keys : kv_types_all)
        for (kv_type values : kv_types_all) {
          const scene world(target, shape_of(heads, kv_heads, head_dim), 83, {keys, values});
          const auto q = queries(world.shape, 0, 83);
          double worst = 0, worst_given = 0; // the latter as a share of what is allowed
          const auto together = attend(world, 0, 83, 2);
          const auto alone = attend(world, 82, 1, 1);
          const auto width = static_cast<std::ptrdiff_t>(world.shape.q_width());
          CHECK(std::memcmp(alone.data(), together.data() + 82 * width, alone.size() * 4) == 0);
          for (int t : {0, 1, 15, 16, 40, 82})
            for (int h = 0; h < heads; ++h) {
              const std::ptrdiff_t at = t * width + h * head_dim;
              const auto kept = world.expected(q.data() + at, h, t);
              const auto given = world.attention_over(world.given_keys, world.given_values, q.data() + at, h, t);
              double size = 0;
              for (int i = 0; i < head_dim; ++i)
                size += std::abs(q[static_cast<std::size_t>(at + i)]);
              const double score = size * step(keys) / std::sqrt(static_cast<double>(head_dim));
              const double allowed = step(values) + 2 * std::expm1(2 * score) + 5e-6;
              for (std::size_t i = 0; i < static_cast<std::size_t>(head_dim); ++i) {
                const double got = together[static_cast<std::size_t>(at) + i];
                worst = std::max(worst, std::abs(got - kept[i]));
                worst_given = std::max(worst_given, std::abs(got - given[i]) / allowed);
              }
            }
          CAPTURE(name_of(target));
          CAPTURE(name_of(keys));
          CAPTURE(name_of(values));
          CAPTURE(head_dim);
          CHECK(worst < 5e-6);
          CHECK(worst_given < 1);
        }
}
