// bench_attention [threads] [rounds] [isa]: what reading keys and values costs a decode step, by KV type and context.
//
// One token attends to a full context in every layer of a model's shape, so that keys and values come from where a real step
// finds them. Types take turns within a round. Printed are the median and the best of the rounds in microseconds a step for all
// layers' attention, and of the best the share of f16's and the rate at which pages are read: the best round is the one that
// nothing else on the machine disturbed.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "cpu/attention_units.hpp"
#include "cpu/kv_store.hpp"
#include "cpu/thread_team.hpp"
#include "cpu/vector_kernels.hpp"

using namespace troupe;
using namespace troupe::cpu;

namespace {

struct model_shape {
  const char* name;
  int layers, heads, kv_heads, head_dim;
};
constexpr model_shape shapes[] = {{"SmolLM2-135M", 30, 9, 3, 64}, {"Qwen3-0.6B", 28, 16, 8, 128}};
constexpr int contexts[] = {1024, 4096};

class decode_scene {
public:
  decode_scene(const model_shape& m, int context, kv_type type, isa target, int threads)
      : kernels_(vector_kernels_for(target)), shape_(shape_of(m)),
        kv_(std::move(*kv_store::create(shape_, {type, type}, static_cast<std::uint32_t>(context / limits::page_tokens)))),
        scratch_(attention_units::scratch_floats(shape_) * static_cast<std::size_t>(threads)),
        q_(static_cast<std::size_t>(shape_.q_width())), out_(q_.size()) {
    auto table = std::make_shared<page_table>();
    for (page_id p = 0; p < kv_.pages(); ++p)
      table->push_back(p);
    fill(type);
    for (std::size_t i = 0; i < q_.size(); ++i)
      q_[i] = number(i);
    step_.tokens = {0};
    step_.position = context - 1;
    step_.pages = std::move(table);
    step_.sample = true;
    batch_.sequences.push_back({&step_, 0, 0, 1});
  }

  double seconds(thread_team& team) {
    const auto start = std::chrono::steady_clock::now();
    units_.plan(batch_, shape_, team.size(), false);
    const attention_rows io{q_.data(), shape_.q_width(), nullptr, out_.data()};
    const std::size_t floats = attention_units::scratch_floats(shape_);
    team.run([&](int thread) {
      for (int layer = 0; layer < shape_.layers; ++layer) {
        team.sync([&] { units_.begin_layer(); });
        team.share(units_.count(), [&](int u) {
          units_.compute(u, layer, io, kv_, kernels_, scratch_.data() + floats * static_cast<std::size_t>(thread));
        });
        team.sync();
      }
    });
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  double bytes() const { return static_cast<double>(kv_.pages()) * static_cast<double>(kv_.page_bytes()); }

private:
  static hyperparameters shape_of(const model_shape& m) {
    hyperparameters s;
    s.layers = m.layers;
    s.heads = m.heads;
    s.kv_heads = m.kv_heads;
    s.head_dim = m.head_dim;
    return s;
  }
  static float number(std::uint64_t i) { return static_cast<float>(uniform_at(7, i) * 4 - 2); }

  void fill(kv_type type) {
    std::vector<float> row(static_cast<std::size_t>(shape_.head_dim));
    for (std::size_t i = 0; i < row.size(); ++i)
      row[i] = number(i);
    const auto store = kernels_.rows_of(type).store;
    for (page_id p = 0; p < kv_.pages(); ++p)
      for (int layer = 0; layer < shape_.layers; ++layer)
        for (int head = 0; head < shape_.kv_heads; ++head)
          for (int token = 0; token < limits::page_tokens; ++token) {
            row[(p + static_cast<std::size_t>(token)) % row.size()] += 0.1f;
            store(kv_.keys(layer, head) + p * kv_.page_bytes(), token, row.data(), shape_.head_dim);
            store(kv_.values(layer, head) + p * kv_.page_bytes(), token, row.data(), shape_.head_dim);
          }
  }

  const vector_kernels& kernels_;
  hyperparameters shape_;
  kv_store kv_;
  attention_units units_;
  step_batch batch_;
  sequence_step step_;
  std::vector<float> scratch_, q_, out_;
};

void measure(const model_shape& m, int context, isa target, thread_team& team, int rounds) {
  std::vector<std::unique_ptr<decode_scene>> scenes;
  for (const kv_type type : kv_types_all)
    scenes.push_back(std::make_unique<decode_scene>(m, context, type, target, team.size()));
  std::vector<double> times[kv_type_count];
  for (int round = 0; round <= rounds; ++round) // the first is not counted
    for (int t = 0; t < kv_type_count; ++t) {
      const double s = scenes[static_cast<std::size_t>(t)]->seconds(team);
      if (round > 0)
        times[t].push_back(s);
    }
  for (int t = 0; t < kv_type_count; ++t) {
    std::sort(times[t].begin(), times[t].end());
    const double best = times[t].front(), median = times[t][times[t].size() / 2];
    std::printf("| %-12s | %5d | %-4s | %8.0f | %8.0f | %5.2f | %5.1f |\n", m.name, context, name_of(kv_types_all[t]).data(),
                median * 1e6, best * 1e6, best / times[0].front(), scenes[static_cast<std::size_t>(t)]->bytes() / best / 1e9);
  }
  std::fflush(stdout);
}

} // namespace

int main(int count, char** arguments) {
  thread_team team(count > 1 ? std::atoi(arguments[1]) : 0);
  const int rounds = count > 2 ? std::max(1, std::atoi(arguments[2])) : 15;
  const auto target = count > 3 ? isa_named(arguments[3]) : std::optional(best_isa());
  if (!target || !machine_has(*target)) {
    std::cerr << "bench_attention: this machine has no " << arguments[3] << "\n";
    return 1;
  }
  std::printf("%s, %d threads, %d rounds\n\n", name_of(*target).data(), team.size(), rounds);
  std::printf("| shape | context | type | us, median | us, best | of f16 | GB/s |\n|---|---|---|---|---|---|---|\n");
  for (const auto& m : shapes)
    for (const int context : contexts)
      measure(m, context, *target, team, rounds);
  return 0;
}
