#include "bench/machine_limits.hpp"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <thread>

#include "cpu/huge_memory.hpp"
#include "cpu/isa.hpp"

namespace troupe::bench {
namespace {

using vector_of_longs = std::uint64_t __attribute__((vector_size(32)));
using vector_of_floats = float __attribute__((vector_size(32)));

volatile std::uint64_t sink_bits;
volatile float sink_float;

#if defined(__x86_64__)
#define TROUPE_WIDE __attribute__((target("avx2,fma")))
#else
#define TROUPE_WIDE
#endif

template <int Streams, int Ahead>
TROUPE_WIDE void read_streams(const std::byte* data, std::size_t bytes) {
  vector_of_longs sum[Streams] = {};
  const std::size_t stride = bytes / Streams / 64 * 64;
  for (std::size_t i = 0; i < stride; i += 64)
    for (int s = 0; s < Streams; ++s) {
      const std::byte* at = data + static_cast<std::size_t>(s) * stride + i;
      if (Ahead != 0)
        __builtin_prefetch(at + Ahead);
      const auto* lines = reinterpret_cast<const vector_of_longs*>(at);
      sum[s] ^= lines[0] ^ lines[1];
    }
  for (int s = 1; s < Streams; ++s)
    sum[0] ^= sum[s];
  sink_bits = sum[0][0];
}

constexpr int multiply_steps = 4'000'000;
constexpr int chains = 12; // enough for the latency of two units, and all fit in 16 registers

TROUPE_WIDE void multiply_add() {
  vector_of_floats sum[chains], a = {}, b = {};
  for (int j = 0; j < chains; ++j)
    sum[j] = vector_of_floats{} + static_cast<float>(j);
  a += 0.999f;
  b += 1e-3f;
  for (int i = 0; i < multiply_steps; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < chains; ++j)
      sum[j] = sum[j] * a + b;
    asm volatile("" : "+x"(a)); // a new factor for all the compiler knows
  }
  for (int j = 1; j < chains; ++j)
    sum[0] += sum[j];
  sink_float = sum[0][0];
}

template <class Work>
limit rate(std::string name, int threads, double amount, Work&& work) {
  const timing t = time_threads(threads, 9, work);
  return {std::move(name), amount / t.median / 1e9, amount / t.best / 1e9};
}

} // namespace

timing time_threads(int threads, int repeats, const std::function<void(int)>& work) {
  std::barrier start(threads), end(threads);
  std::vector<double> seconds;
  // The caller is thread 0, so that no more threads than asked compete for the cores.
  const auto run = [&](int thread) {
    for (int r = 0; r <= repeats; ++r) {
      start.arrive_and_wait();
      const auto begin = std::chrono::steady_clock::now();
      work(thread);
      end.arrive_and_wait();
      if (r > 0 && thread == 0)
        seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
  };
  std::vector<std::jthread> team;
  for (int i = 1; i < threads; ++i)
    team.emplace_back(run, i);
  run(0);
  std::sort(seconds.begin(), seconds.end());
  return {seconds[seconds.size() / 2], seconds[0]};
}

std::vector<limit> read_bandwidth(int threads, std::size_t bytes) {
  const cpu::huge_memory memory(bytes);
  std::fill(memory.data(), memory.data() + bytes, std::byte{1});
  const std::size_t part = bytes / static_cast<std::size_t>(threads) / 4096 * 4096;
  const auto run = [&](const char* name, void (*read)(const std::byte*, std::size_t)) {
    return rate(name, threads, static_cast<double>(part) * threads,
                [&](int i) { read(memory.data() + static_cast<std::size_t>(i) * part, part); });
  };
  return {run("read, 1 stream", read_streams<1, 0>),  run("read, 1 stream, prefetch 1 KiB", read_streams<1, 1024>),
          run("read, 2 streams", read_streams<2, 0>), run("read, 2 streams, prefetch 1 KiB", read_streams<2, 1024>),
          run("read, 4 streams", read_streams<4, 0>), run("read, 4 streams, prefetch 1 KiB", read_streams<4, 1024>)};
}

std::vector<limit> arithmetic_peak(int threads) {
  const double flops = 2.0 * 8 * chains * multiply_steps * threads;
  if (!cpu::machine_has(cpu::isa::avx2))
    return {};
  return {rate("f32 multiply-add, 256 bits", threads, flops, [](int) { multiply_add(); })};
}

} // namespace troupe::bench
