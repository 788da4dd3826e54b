// How near do the matrix products come to this machine's memory bandwidth (1 to 8 rows) and arithmetic (512 rows)?
//
// bench_matmul [--type Q4_1] [--threads 2] [--isa avx2] [--shape smollm2|qwen3]; without them every type, 1 and 2 threads, the
// best isa, both shapes. Figures are medians of wall time (best in brackets) over one layer's seven matrices, repeated until
// they no longer fit in a cache. GB/s counts packed bytes.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.hpp"
#include "bench/machine_limits.hpp"
#include "cpu/packed_matrix.hpp"
#include "model/weight_types.hpp"

using namespace troupe;
using namespace troupe::cpu;

namespace {

struct matrix_size {
  std::int64_t rows, columns;
};

struct layer_shape {
  std::string_view name;
  std::vector<matrix_size> matrices; // q, k, v, o, gate, up, down
};

const layer_shape shapes[] = {
    {"smollm2", {{576, 576}, {192, 576}, {192, 576}, {576, 576}, {1536, 576}, {1536, 576}, {576, 1536}}},
    {"qwen3", {{2048, 1024}, {1024, 1024}, {1024, 1024}, {1024, 2048}, {3072, 1024}, {3072, 1024}, {1024, 3072}}},
};

struct options {
  std::optional<weight_type> type;
  int threads = 0;
  isa target = best_isa();
  std::string shape;
};

constexpr std::size_t decode_bytes = 96u << 20; // several times any cache of a desktop machine

packed_matrix random_matrix(weight_type type, matrix_size size, isa target) {
  tensor_view view{.type = type, .rows = size.rows, .columns = size.columns, .data = nullptr};
  std::vector<std::byte> blocks(view.bytes());
  view.data = blocks.data();
  std::vector<float> row(static_cast<std::size_t>(size.columns));
  for (std::int64_t r = 0; r < size.rows; ++r) {
    if (r < 16) { // the same few rows again: values do not change the time
      for (std::size_t c = 0; c < row.size(); ++c)
        row[c] = static_cast<float>(uniform_at(static_cast<std::uint64_t>(r), c) - 0.5) * 0.05f;
      quantize_row(type, row.data(), blocks.data() + static_cast<std::size_t>(r) * view.row_bytes(), size.columns);
    } else {
      std::memcpy(blocks.data() + static_cast<std::size_t>(r) * view.row_bytes(), view.row(r % 16), view.row_bytes());
    }
  }
  return packed_matrix::pack(view, target);
}

struct layer_set {
  std::vector<packed_matrix> matrices;
  std::size_t bytes = 0;
  double weights = 0;
};

layer_set make_layers(weight_type type, const layer_shape& shape, isa target, std::size_t bytes_wanted) {
  layer_set out;
  do {
    for (const matrix_size& m : shape.matrices) {
      out.matrices.push_back(random_matrix(type, m, target));
      out.bytes += out.matrices.back().bytes();
      out.weights += static_cast<double>(m.rows) * static_cast<double>(m.columns);
    }
  } while (out.bytes < bytes_wanted);
  return out;
}

// All products of the set, `count` rows each, every matrix cut in `threads` slices of whole tiles.
bench::timing time_products(const layer_set& layers, int count, int threads, isa target) {
  std::vector<prepared_rows> inputs; // by column count
  std::vector<float> x;
  const auto input_of = [&](const packed_matrix& w) -> prepared_rows& {
    for (prepared_rows& rows : inputs)
      if (rows.columns == w.columns())
        return rows;
    prepared_rows& rows = inputs.emplace_back();
    reserve_rows(rows, w, count);
    x.resize(static_cast<std::size_t>(w.columns()));
    for (int i = 0; i < count; ++i) {
      for (std::size_t c = 0; c < x.size(); ++c)
        x[c] = static_cast<float>(uniform_at(static_cast<std::uint64_t>(i) + 99, c) - 0.5);
      prepare_row(rows, i, x.data(), target);
    }
    return rows;
  };
  inputs.reserve(8);
  std::vector<const prepared_rows*> input;
  std::int64_t widest = 0;
  for (const packed_matrix& w : layers.matrices) {
    input.push_back(&input_of(w));
    widest = std::max(widest, w.rows());
  }
  std::vector<float> y(static_cast<std::size_t>(widest * count));
  return bench::time_threads(threads, count > 8 ? 5 : 9, [&](int thread) {
    for (std::size_t m = 0; m < layers.matrices.size(); ++m) {
      const packed_matrix& w = layers.matrices[m];
      const std::int64_t begin = w.tiles() * thread / threads, end = w.tiles() * (thread + 1) / threads;
      multiply(w, *input[m], y.data(), w.rows(), begin * w.tile_rows(), std::min(w.rows(), end * w.tile_rows()));
    }
  });
}

void bench_type(weight_type type, const layer_shape& shape, int threads, isa target) {
  const layer_set many = make_layers(type, shape, target, decode_bytes);
  std::printf("%-5s %-8s %d thread%s ", std::string(info_of(type).name).c_str(), std::string(shape.name).c_str(), threads,
              threads > 1 ? "s" : " ");
  for (int count : {1, 2, 3, 4, 8}) {
    const bench::timing t = time_products(many, count, threads, target);
    std::printf("| %d: %5.1f (%5.1f) GB/s ", count, static_cast<double>(many.bytes) / t.median / 1e9,
                static_cast<double>(many.bytes) / t.best / 1e9);
    std::fflush(stdout);
  }
  const layer_set one = make_layers(type, shape, target, 0);
  const bench::timing t = time_products(one, 512, threads, target);
  std::printf("| 512: %6.1f (%6.1f) GFLOP/s\n", 2 * one.weights * 512 / t.median / 1e9, 2 * one.weights * 512 / t.best / 1e9);
  std::fflush(stdout);
}

void print_limits(int threads) {
  for (const bench::limit& l : bench::read_bandwidth(threads, 256u << 20))
    std::printf("%d thread%s %-34s %7.1f (%.1f) GB/s\n", threads, threads > 1 ? "s" : " ", l.name.c_str(), l.median, l.best);
  for (const bench::limit& l : bench::arithmetic_peak(threads))
    std::printf("%d thread%s %-34s %7.1f (%.1f) GFLOP/s\n", threads, threads > 1 ? "s" : " ", l.name.c_str(), l.median, l.best);
}

bool parse(int argc, char** argv, options& out) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view key = argv[i], value = argv[i + 1];
    if (key == "--type")
      out.type = weight_type_named(value);
    else if (key == "--threads")
      out.threads = std::atoi(argv[i + 1]);
    else if (key == "--isa" && isa_named(value))
      out.target = *isa_named(value);
    else if (key == "--shape")
      out.shape = value;
    else
      return false;
  }
  return argc % 2 == 1 && machine_has(out.target);
}

} // namespace

int main(int argc, char** argv) {
  options o;
  if (!parse(argc, argv, o)) {
    std::fprintf(stderr, "usage: bench_matmul [--type Q4_1] [--threads N] [--isa plain|avx2|avx512] [--shape smollm2|qwen3]\n");
    return 2;
  }
  std::printf("isa %s; median (best)\n", std::string(name_of(o.target)).c_str());
  for (int threads : {1, 2}) {
    if (o.threads != 0 && threads != o.threads)
      continue;
    print_limits(threads);
    for (const layer_shape& shape : shapes)
      for (int t = 0; t < weight_type_count; ++t) {
        const auto type = static_cast<weight_type>(t);
        if ((!o.type || *o.type == type) && (o.shape.empty() || o.shape == shape.name))
          bench_type(type, shape, threads, o.target);
      }
  }
}
