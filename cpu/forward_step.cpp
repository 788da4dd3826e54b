#include "cpu/forward_step.hpp"

#include <algorithm>
#include <numeric>

#include "cpu/rotation.hpp"

namespace troupe::cpu {
namespace {

// Fewer rows than this are done by the last thread to arrive, while the others wait: cheaper than one more meeting.
constexpr int shared_rows_min = 4;
constexpr int row_blocks_a_thread = 4;

std::size_t floats(int rows, int width) {
  return static_cast<std::size_t>(rows) * static_cast<std::size_t>(width);
}

int whole_lines(int count) {
  return (count + 15) / 16 * 16;
}

} // namespace

forward_step::forward_step(const packed_model& model, kv_store& kv, thread_team& team, int rows_max)
    : model_(model), shape_(model.source.shape), kernels_(vector_kernels_for(model.target)), kv_(kv), team_(team),
      rope_(make_rope_table(shape_.rope, shape_.head_dim)), temporary_width_(whole_lines(shape_.hidden)),
      attention_floats_((attention_units::scratch_floats(shape_) + 15) / 16 * 16), x_(floats(rows_max, shape_.hidden)),
      qkv_(floats(rows_max, model.qkv_width())), mixed_(floats(rows_max, shape_.q_width())),
      gate_(floats(rows_max, shape_.ffn)), up_(floats(rows_max, shape_.ffn)), delta_(floats(rows_max, shape_.hidden)),
      cosine_(floats(rows_max, shape_.head_dim)), sine_(floats(rows_max, shape_.head_dim)),
      logits_(floats(std::min(rows_max, logit_rows), shape_.vocabulary)), temporary_(floats(team.size(), temporary_width_)),
      attention_(static_cast<std::size_t>(team.size()) * attention_floats_), all_rows_(static_cast<std::size_t>(rows_max)) {
  std::iota(all_rows_.begin(), all_rows_.end(), 0);
}

void forward_step::touch() {
  sink_q_.require(qkv_.size());
  sink_cosine_.require(cosine_.size());
  sink_sine_.require(sine_.size());
  for (auto* buffer : {&x_, &qkv_, &sink_q_, &mixed_, &gate_, &up_, &delta_, &cosine_, &sine_, &sink_cosine_, &sink_sine_, &logits_,
                       &temporary_, &attention_})
    buffer->touch();
  const int rows_max = static_cast<int>(all_rows_.size());
  for (const auto& l : model_.layers)
    for (const auto* group : {&l.qkv, &l.o, &l.gate, &l.up, &l.down})
      open_inputs(*group, rows_max);
  open_inputs(model_.output, std::min(rows_max, logit_rows));
}

void forward_step::run(const step_batch& batch, const logit_sink& sink) {
  if (batch.rows.empty() && batch.resumed.empty())
    return;
  batch_ = &batch;
  sink_ = &sink;
  if (batch.turned) {
    sink_q_.require(qkv_.size());
    sink_cosine_.require(cosine_.size());
    sink_sine_.require(sine_.size());
  }
  all_units_.plan(batch, shape_, team_.size(), false);
  last_units_.plan(batch, shape_, team_.size(), true);
  team_.run([this](int thread) { work(thread); });
}

template <class Before, class F>
void forward_step::rows(int count, Before before, F fn) {
  if (count < shared_rows_min) {
    team_.sync([&] {
      before();
      for (int i = 0; i < count; ++i)
        fn(i);
    });
    return;
  }
  team_.sync(before);
  const int blocks = std::min(count, team_.size() * row_blocks_a_thread);
  team_.share(blocks, [&](int b) {
    for (int i = count * b / blocks; i < count * (b + 1) / blocks; ++i)
      fn(i);
  });
  team_.sync();
}

void forward_step::work(int thread) {
  if (!batch_->rows.empty())
    compute_rows(thread);
  compute_logits();
}

void forward_step::compute_rows(int thread) {
  const auto& first = model_.layers.front();
  const int count = static_cast<int>(batch_->rows.size());
  rows(
      count, [&] { open_inputs(first.qkv, count); },
      [&](int r) {
        embed(r);
        kernels_.rms_norm(row(x_, r, shape_.hidden), first.attention_norm.data(), temporary(thread), shape_.hidden,
                          shape_.norm_epsilon);
        prepare(first.qkv, r, temporary(thread));
      });
  for (int layer = 0; layer < shape_.layers; ++layer)
    compute_layer(thread, layer);
}

void forward_step::compute_layer(int thread, int layer) {
  const auto& l = model_.layers[static_cast<std::size_t>(layer)];
  const bool last = layer + 1 == shape_.layers;
  const int count = static_cast<int>(batch_->rows.size());
  const auto& active = last ? batch_->sampled : all_rows_;
  const int active_count = last ? static_cast<int>(active.size()) : count;
  auto& units = last ? last_units_ : all_units_;
  float* temp = temporary(thread);

  multiply_group(l.qkv, qkv_.data(), model_.qkv_width());
  rows(
      count, [&] { units.begin_layer(); }, [&](int r) { rotate_and_keep(layer, r); });
  if (active_count == 0)
    return;
  const attention_rows io{qkv_.data(), model_.qkv_width(), sink_q_.data(), mixed_.data()};
  float* scratch = attention_.data() + static_cast<std::size_t>(thread) * attention_floats_;
  team_.share(units.count(), [&](int u) { units.compute(u, layer, io, kv_, kernels_, scratch); });

  // From here on, row i of every buffer but x_ and mixed_ belongs to batch row active[i].
  const auto residual = [&](int i) { return row(x_, active[static_cast<std::size_t>(i)], shape_.hidden); };
  rows(
      active_count, [&] { open_inputs(l.o, active_count); },
      [&](int i) { prepare(l.o, i, row(mixed_, active[static_cast<std::size_t>(i)], shape_.q_width())); });
  multiply_group(l.o, delta_.data(), shape_.hidden);
  rows(
      active_count, [&] { open_inputs(l.gate, active_count); },
      [&](int i) {
        kernels_.add(residual(i), row(delta_, i, shape_.hidden), shape_.hidden);
        kernels_.rms_norm(residual(i), l.ffn_norm.data(), temp, shape_.hidden, shape_.norm_epsilon);
        prepare(l.gate, i, temp);
      });
  multiply_gate_up(l, active_count);
  rows(
      active_count, [&] { open_inputs(l.down, active_count); }, [&](int i) { prepare(l.down, i, row(gate_, i, shape_.ffn)); });
  multiply_group(l.down, delta_.data(), shape_.hidden);

  const auto* next = last ? nullptr : &model_.layers[static_cast<std::size_t>(layer) + 1];
  rows(
      active_count,
      [&] {
        if (next)
          open_inputs(next->qkv, active_count);
      },
      [&](int i) {
        float* x = residual(i);
        kernels_.add(x, row(delta_, i, shape_.hidden), shape_.hidden);
        if (next) {
          kernels_.rms_norm(x, next->attention_norm.data(), temp, shape_.hidden, shape_.norm_epsilon);
          prepare(next->qkv, i, temp);
        } else {
          kernels_.rms_norm(x, model_.output_norm.data(), x, shape_.hidden, shape_.norm_epsilon);
        }
      });
}

void forward_step::compute_logits() {
  const int total = static_cast<int>(batch_->sampled.size() + batch_->resumed.size());
  for (int first = 0; first < total; first += logit_rows) {
    const int count = std::min(logit_rows, total - first);
    rows(
        count, [&] { open_inputs(model_.output, count); },
        [&](int i) { prepare(model_.output, i, hidden(first + i)); });
    multiply_group(model_.output, logits_.data(), shape_.vocabulary);
    const auto logits = [&](int i) {
      return std::span<float>(row(logits_, i, shape_.vocabulary), static_cast<std::size_t>(shape_.vocabulary));
    };
    team_.sync([&] {
      if (sink_->watch)
        for (int i = 0; i < count; ++i)
          sink_->watch(first + i, logits(i));
    });
    team_.share(count, [&](int i) { sink_->choose(first + i, logits(i)); });
  }
}

const float* forward_step::hidden(int index) const {
  const auto i = static_cast<std::size_t>(index);
  if (i < batch_->sampled.size())
    return row(x_, batch_->sampled[i], shape_.hidden);
  return reinterpret_cast<const float*>(batch_->resumed[i - batch_->sampled.size()].step->state->bytes.data());
}

void forward_step::embed(int r) {
  const auto& from = batch_->rows[static_cast<std::size_t>(r)];
  const auto& table = model_.source.token_embedding;
  dequantize_row(table.type, table.row(from.token), row(x_, r, shape_.hidden), shape_.hidden);

  const auto fill = [&](std::int32_t position, const float_buffer& cosine, const float_buffer& sine) {
    fill_rotation(rope_, rope_.magnitude, shape_.rope.adjacent_pairs, position, row(cosine, r, shape_.head_dim),
                  row(sine, r, shape_.head_dim));
  };
  fill(from.position, cosine_, sine_);
  if (batch_->turned)
    fill(from.sink_position, sink_cosine_, sink_sine_);
}

void forward_step::rotate_and_keep(int layer, int r) {
  const auto& l = model_.layers[static_cast<std::size_t>(layer)];
  const auto& where = batch_->rows[static_cast<std::size_t>(r)];
  float* q = row(qkv_, r, model_.qkv_width());
  float* k = q + shape_.q_width();
  float* v = k + shape_.kv_width();
  if (!l.qkv_bias.empty())
    kernels_.add(q, l.qkv_bias.data(), model_.qkv_width());
  const float* cosine = row(cosine_, r, shape_.head_dim);
  const float* sine = row(sine_, r, shape_.head_dim);
  const auto normalise = [&](float* head, const std::vector<float>& norm) {
    if (!norm.empty())
      kernels_.rms_norm(head, norm.data(), head, shape_.head_dim, shape_.norm_epsilon);
  };
  const auto rotate = [&](float* head, const float* c, const float* s) {
    kernels_.rotate(head, c, s, shape_.head_dim, shape_.rope.adjacent_pairs);
  };
  for (int h = 0; h < shape_.heads; ++h)
    normalise(q + h * shape_.head_dim, l.q_norm);
  if (batch_->turned) {
    float* seen = row(sink_q_, r, model_.qkv_width());
    std::copy_n(q, shape_.q_width(), seen);
    for (int h = 0; h < shape_.heads; ++h)
      rotate(seen + h * shape_.head_dim, row(sink_cosine_, r, shape_.head_dim), row(sink_sine_, r, shape_.head_dim));
  }
  for (int h = 0; h < shape_.heads; ++h)
    rotate(q + h * shape_.head_dim, cosine, sine);
  const std::size_t page = where.page * kv_.page_bytes();
  const auto store_key = kernels_.rows_of(kv_.types().keys).store, store_value = kernels_.rows_of(kv_.types().values).store;
  for (int h = 0; h < shape_.kv_heads; ++h) {
    normalise(k + h * shape_.head_dim, l.k_norm);
    rotate(k + h * shape_.head_dim, cosine, sine);
    store_key(kv_.keys(layer, h) + page, where.slot, k + h * shape_.head_dim, shape_.head_dim);
    store_value(kv_.values(layer, h) + page, where.slot, v + h * shape_.head_dim, shape_.head_dim);
  }
}

void forward_step::open_inputs(const matrix_group& group, int count) {
  for (const auto* m : group.kinds)
    reserve_rows(inputs_[static_cast<int>(m->input_kind())], *m, count);
}

void forward_step::prepare(const matrix_group& group, int index, const float* x) {
  for (const auto* m : group.kinds)
    prepare_row(inputs_[static_cast<int>(m->input_kind())], index, x, model_.target);
}

void forward_step::multiply_slice(const matrix_slice& slice, float* y, std::ptrdiff_t y_stride) {
  multiply(*slice.matrix, inputs_[static_cast<int>(slice.matrix->input_kind())], y + slice.column, y_stride, slice.row_begin,
           slice.row_end);
}

void forward_step::multiply_group(const matrix_group& group, float* y, std::ptrdiff_t y_stride) {
  team_.share(static_cast<int>(group.slices.size()),
              [&](int s) { multiply_slice(group.slices[static_cast<std::size_t>(s)], y, y_stride); });
}

// gate = silu(gate) * up, slice by slice.
void forward_step::multiply_gate_up(const packed_layer& layer, int count) {
  team_.share(static_cast<int>(layer.gate.slices.size()), [&](int s) {
    const auto& gate = layer.gate.slices[static_cast<std::size_t>(s)];
    const auto& up = layer.up.slices[static_cast<std::size_t>(s)];
    multiply_slice(gate, gate_.data(), shape_.ffn);
    multiply_slice(up, up_.data(), shape_.ffn);
    for (int i = 0; i < count; ++i)
      kernels_.silu_multiply(row(gate_, i, shape_.ffn) + gate.row_begin, row(up_, i, shape_.ffn) + gate.row_begin,
                             static_cast<int>(gate.row_end - gate.row_begin));
  });
}

} // namespace troupe::cpu
