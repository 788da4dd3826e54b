#include "cpu/packed_model.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <optional>
#include <string>

#include "model/mapped_file.hpp"

namespace troupe::cpu {
namespace {

constexpr int slices_a_thread = 4;                     // so that a thread that is held up leaves work to the others
constexpr std::size_t slice_bytes_min = 32u << 10;     // below it the hand-out costs more than it evens out
constexpr std::size_t progress_bytes_min = 512u << 20; // smaller models are packed before anyone wonders

std::vector<float> floats_of(const tensor_view& w) {
  std::vector<float> out(static_cast<std::size_t>(w.columns));
  if (w)
    dequantize_row(w.type, w.data, out.data(), w.columns);
  return out;
}

bool has_shape(const tensor_view& w, std::int64_t rows, std::int64_t columns) {
  return w && w.rows == rows && w.columns == columns && columns % info_of(w.type).block_weights == 0;
}

// What is wrong with the weights' shapes, or nothing.
std::optional<std::string> shape_fault(const model_weights& w) {
  const auto& s = w.shape;
  if (s.layers <= 0 || static_cast<std::size_t>(s.layers) != w.layers.size() || s.hidden <= 0 || s.ffn <= 0 ||
      s.kv_heads <= 0 || s.heads <= 0 || s.heads % s.kv_heads != 0 || s.head_dim <= 0 || s.head_dim % 2 != 0 ||
      s.vocabulary <= 0)
    return "hyperparameters";
  if (!has_shape(w.token_embedding, s.vocabulary, s.hidden))
    return "token embedding";
  if (!has_shape(w.output, s.vocabulary, s.hidden) || !has_shape(w.output_norm, 1, s.hidden))
    return "output";
  for (std::size_t i = 0; i < w.layers.size(); ++i) {
    const auto& l = w.layers[i];
    const bool good =
        has_shape(l.attention_norm, 1, s.hidden) && has_shape(l.ffn_norm, 1, s.hidden) &&
        has_shape(l.q, s.q_width(), s.hidden) && has_shape(l.k, s.kv_width(), s.hidden) &&
        has_shape(l.v, s.kv_width(), s.hidden) && has_shape(l.o, s.hidden, s.q_width()) && has_shape(l.gate, s.ffn, s.hidden) &&
        has_shape(l.up, s.ffn, s.hidden) && has_shape(l.down, s.hidden, s.ffn) &&
        (!s.qk_norm || (has_shape(l.q_norm, 1, s.head_dim) && has_shape(l.k_norm, 1, s.head_dim))) &&
        (!s.qkv_bias ||
         (has_shape(l.q_bias, 1, s.q_width()) && has_shape(l.k_bias, 1, s.kv_width()) && has_shape(l.v_bias, 1, s.kv_width())));
    if (!good)
      return "layer " + std::to_string(i);
  }
  return std::nullopt;
}

struct group_part {
  const packed_matrix* matrix;
  std::ptrdiff_t column;
};

void add_kind(matrix_group& g, const packed_matrix& m) {
  if (std::none_of(g.kinds.begin(), g.kinds.end(), [&](const packed_matrix* k) { return k->input_kind() == m.input_kind(); }))
    g.kinds.push_back(&m);
}

// Cuts the group's matrices into slices of about equal bytes that start on multiples of `tile` rows.
matrix_group make_group(const std::vector<group_part>& parts, std::int64_t tile, int threads) {
  matrix_group g;
  std::size_t total = 0;
  for (const auto& p : parts) {
    total += p.matrix->bytes();
    add_kind(g, *p.matrix);
  }
  const std::size_t wanted = std::max(slice_bytes_min, total / static_cast<std::size_t>(threads * slices_a_thread) + 1);
  for (const auto& p : parts) {
    const std::int64_t step = std::lcm<std::int64_t>(tile, p.matrix->tile_rows());
    const std::int64_t tiles = (p.matrix->rows() + step - 1) / step;
    const auto by_bytes = static_cast<std::int64_t>((p.matrix->bytes() + wanted / 2) / wanted);
    const std::int64_t count = std::clamp<std::int64_t>(by_bytes, 1, tiles);
    for (std::int64_t i = 0; i < count; ++i)
      g.slices.push_back(
          {p.matrix, p.column, tiles * i / count * step, std::min(tiles * (i + 1) / count * step, p.matrix->rows())});
  }
  return g;
}

// Packs a list of matrices by parts of about part_bytes, in any order, and says how far it is.
class packer {
public:
  // `mapped`: what was packed is taken out of resident memory, so that weights are not held twice.
  packer(isa target, bool mapped, thread_team& team, const log_sink& log)
      : target_(target), mapped_(mapped), team_(team), log_(log) {}

  void add(const tensor_view& w) {
    sources_.push_back(w);
    packed_.push_back(packed_matrix::make_room(w, target_));
    const std::int64_t tiles = packed_.back().tiles();
    const auto parts = std::clamp<std::int64_t>(static_cast<std::int64_t>(w.bytes() / part_bytes), 1, tiles);
    for (std::int64_t i = 0; i < parts; ++i)
      parts_.push_back({packed_.size() - 1, tiles * i / parts, tiles * (i + 1) / parts});
    total_ += w.bytes();
  }

  std::vector<packed_matrix> run() {
    team_.for_each(static_cast<int>(parts_.size()), [&](int i) {
      const part& p = parts_[static_cast<std::size_t>(i)];
      auto& matrix = packed_[p.matrix];
      matrix.pack_tiles(sources_[p.matrix], p.begin, p.end);
      if (mapped_)
        drop(sources_[p.matrix], p.begin * matrix.tile_rows(), p.end * matrix.tile_rows());
      report(sources_[p.matrix].bytes() * static_cast<std::size_t>(p.end - p.begin) / static_cast<std::size_t>(matrix.tiles()));
    });
    if (mapped_)
      for (const auto& w : sources_) // pages between two parts, and what the system read ahead
        drop(w, 0, w.rows);
    return std::move(packed_);
  }

private:
  static void drop(const tensor_view& w, std::int64_t begin, std::int64_t end) noexcept {
    drop_resident({w.row(begin), w.row_bytes() * static_cast<std::size_t>(std::min(end, w.rows) - begin)});
  }

  static constexpr std::size_t part_bytes = 4u << 20;
  struct part {
    std::size_t matrix;
    std::int64_t begin, end; // tiles
  };

  void report(std::size_t bytes) {
    const std::size_t before = done_.fetch_add(bytes);
    const std::size_t quarter = (before + bytes) * 4 / total_;
    if (total_ >= progress_bytes_min && quarter != before * 4 / total_ && quarter < 4)
      log_to(log_, log_level::info, "cpu: packing weights, " + std::to_string(quarter * 25) + "%");
  }

  isa target_;
  bool mapped_;
  thread_team& team_;
  const log_sink& log_;
  std::vector<tensor_view> sources_;
  std::vector<packed_matrix> packed_;
  std::vector<part> parts_;
  std::size_t total_ = 0;
  std::atomic<std::size_t> done_{0};
};

packed_layer make_layer(const layer_weights& w, const hyperparameters& s, const packed_matrix* m, int threads) {
  packed_layer l;
  l.attention_norm = floats_of(w.attention_norm);
  l.ffn_norm = floats_of(w.ffn_norm);
  if (s.qk_norm) {
    l.q_norm = floats_of(w.q_norm);
    l.k_norm = floats_of(w.k_norm);
  }
  if (s.qkv_bias)
    for (const auto* b : {&w.q_bias, &w.k_bias, &w.v_bias}) {
      const auto floats = floats_of(*b);
      l.qkv_bias.insert(l.qkv_bias.end(), floats.begin(), floats.end());
    }
  const std::ptrdiff_t k_at = s.q_width(), v_at = s.q_width() + s.kv_width();
  l.qkv = make_group({{&m[0], 0}, {&m[1], k_at}, {&m[2], v_at}}, 1, threads);
  l.o = make_group({{&m[3], 0}}, 1, threads);
  const std::int64_t tile = std::lcm(m[4].tile_rows(), m[5].tile_rows());
  l.gate = make_group({{&m[4], 0}}, tile, threads);
  l.up = make_group({{&m[5], 0}}, tile, threads);
  l.up.slices = l.gate.slices; // gate leads, also where their types differ in size
  for (auto& slice : l.up.slices)
    slice.matrix = &m[5];
  add_kind(l.gate, m[5]);
  l.down = make_group({{&m[6], 0}}, 1, threads);
  return l;
}

constexpr std::size_t matrices_a_layer = 7;

} // namespace

result<packed_model> pack_model(model_weights weights, isa target, thread_team& team, const log_sink& log) {
  if (const auto fault = shape_fault(weights))
    return fail(errc::model_format, "the shapes of the model's tensors contradict its hyperparameters: " + *fault);
  const auto start = std::chrono::steady_clock::now();
  packed_model model;
  model.target = target;
  model.source = std::move(weights);
  packer p(target, model.source.mapped, team, log);
  for (const auto& l : model.source.layers)
    for (const auto* w : {&l.q, &l.k, &l.v, &l.o, &l.gate, &l.up, &l.down})
      p.add(*w);
  p.add(model.source.output);
  model.matrices = p.run();
  for (std::size_t i = 0; i < model.source.layers.size(); ++i)
    model.layers.push_back(
        make_layer(model.source.layers[i], model.source.shape, &model.matrices[i * matrices_a_layer], team.size()));
  model.output_norm = floats_of(model.source.output_norm);
  model.output = make_group({{&model.matrices.back(), 0}}, 1, team.size());
  for (const auto& m : model.matrices)
    model.bytes += m.bytes();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  char line[96];
  std::snprintf(line, sizeof line, "cpu: packed %zu MiB of weights in %.1f s", model.bytes >> 20, seconds.count());
  log_to(log, log_level::info, line);
  return model;
}

} // namespace troupe::cpu
