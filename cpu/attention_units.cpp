#include "cpu/attention_units.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::cpu {
namespace {

constexpr int rows_a_tile = 48;   // query rows that share one pass over keys and values; more would leave the L1 cache
constexpr int units_a_thread = 4; // with fewer, long contexts are cut into chunks

int group_of(const hyperparameters& s) noexcept {
  return s.heads / s.kv_heads;
}
int tokens_a_tile(const hyperparameters& s) noexcept {
  return std::max(1, rows_a_tile / group_of(s));
}

} // namespace

std::size_t attention_units::scratch_floats(const hyperparameters& shape) noexcept {
  return attention_scratch(tokens_a_tile(shape) * group_of(shape), shape.head_dim);
}

void attention_units::plan(const step_batch& batch, const hyperparameters& shape, int threads, bool only_sampled) {
  shape_ = &shape;
  units_.clear();
  splits_.clear();
  scored_.clear();
  scores_size_ = 0;
  layers_ = 0;
  for (const auto& s : batch.sequences) {
    if (only_sampled) {
      if (s.step->sample)
        add_tile(s, s.rows - 1, 1);
      continue;
    }
    if (s.step->scores != attention_score::none) {
      add_scored(s);
      continue;
    }
    for (int first = 0; first < s.rows; first += tokens_a_tile(shape))
      add_tile(s, first, std::min(tokens_a_tile(shape), s.rows - first));
  }
  if (threads > 1 && count() < threads * units_a_thread)
    split_long_tiles();
  scores_.require(scores_size_);
  std::fill_n(scores_.data(), scores_size_, 0.0f);
  std::stable_sort(units_.begin(), units_.end(), [](const unit& a, const unit& b) { return a.cost > b.cost; });
}

void attention_units::add_tile(const batch_sequence& s, int first, int tokens) {
  const int end = s.step->position + first + tokens;
  const int chunks = (end - 1) / attention_chunk + 1;
  const attention_window& window = s.step->window;
  const int seen = end - std::max(0, window.hidden_end(end - tokens) - window.sinks());
  for (int head = 0; head < shape_->kv_heads; ++head)
    units_.push_back({&s, first, tokens, head, 0, chunks, -1, -1, static_cast<long>(tokens) * seen});
}

void attention_units::add_scored(const batch_sequence& s) {
  const int positions = s.step->position + s.rows;
  const std::ptrdiff_t stride = (positions + attention_block - 1) / attention_block * attention_block;
  const int score = static_cast<int>(scored_.size());
  scored_.push_back({&s, positions, stride, scores_size_});
  scores_size_ += 2 * static_cast<std::size_t>(shape_->heads) * static_cast<std::size_t>(stride);
  for (int head = 0; head < shape_->kv_heads; ++head)
    units_.push_back({&s, 0, s.rows, head, 0, (positions - 1) / attention_chunk + 1, -1, score,
                      2 * static_cast<long>(s.rows) * positions});
}

void attention_units::split_long_tiles() {
  std::vector<unit> parts;
  std::size_t floats = 0;
  for (const unit& u : units_) {
    if (u.chunk_end == 1 || u.score >= 0) {
      parts.push_back(u);
      continue;
    }
    const int split = static_cast<int>(splits_.size());
    splits_.push_back({floats, 0});
    floats += static_cast<std::size_t>(u.chunk_end * u.tokens * group_of(*shape_)) * partial_row(shape_->head_dim);
    const attention_task whole = task_of(u);
    for (int c = 0; c < u.chunk_end; ++c) {
      if (whole.hides_chunk(c))
        continue;
      ++splits_.back().chunks;
      unit part = u;
      part.chunk_begin = c;
      part.chunk_end = c + 1;
      part.split = split;
      part.cost = static_cast<long>(u.tokens) * attention_chunk;
      parts.push_back(part);
    }
  }
  units_ = std::move(parts);
  partials_.require(floats);
  if (open_chunks_size_ < splits_.size()) {
    open_chunks_ = std::make_unique<std::atomic<int>[]>(splits_.size());
    open_chunks_size_ = splits_.size();
  }
}

void attention_units::begin_layer() noexcept {
  ++layers_;
  for (std::size_t i = 0; i < splits_.size(); ++i)
    open_chunks_[i].store(splits_[i].chunks, std::memory_order_relaxed);
}

// Which queries and positions a unit is about, without where they lie.
attention_task attention_units::task_of(const unit& n) const {
  attention_task t;
  t.tokens = n.tokens;
  t.group = group_of(*shape_);
  t.head_dim = shape_->head_dim;
  t.position = n.sequence->step->position + n.first;
  t.window = n.sequence->step->window;
  t.chunk_begin = n.chunk_begin;
  t.chunk_end = n.chunk_end;
  return t;
}

void attention_units::compute(int u, int layer, const attention_rows& rows, const kv_store& kv, const vector_kernels& kernels,
                              float* scratch) {
  const unit& n = units_[static_cast<std::size_t>(u)];
  attention_task t = task_of(n);
  const std::ptrdiff_t row = n.sequence->first_row + n.first;
  const std::ptrdiff_t column = static_cast<std::ptrdiff_t>(n.kv_head) * t.group * shape_->head_dim;
  t.q = rows.q + row * rows.q_stride + column;
  t.q_stride = rows.q_stride;
  if (n.sequence->turned)
    t.sink_q = rows.sink_q + row * rows.q_stride + column;
  t.scale = 1.0f / std::sqrt(static_cast<float>(shape_->head_dim));
  t.types = kv.types();
  t.keys = kv.keys(layer, n.kv_head);
  t.values = kv.values(layer, n.kv_head);
  t.page_stride = kv.page_bytes();
  t.pages = n.sequence->step->pages->data();
  t.out_stride = shape_->q_width();
  t.out = rows.out + row * t.out_stride + column;
  t.scratch = scratch;
  if (n.score >= 0)
    return attend_scored(n, t, kernels);
  if (n.split < 0) {
    kernels.attend(t);
    return;
  }
  const auto split = static_cast<std::size_t>(n.split);
  t.partial = partials_.data() + splits_[split].partial;
  kernels.attend(t);
  if (open_chunks_[split].fetch_sub(1, std::memory_order_acq_rel) == 1)
    kernels.merge(t);
}

// All tiles of one KV head: its heads' scores belong to the calling thread.
void attention_units::attend_scored(const unit& n, attention_task t, const vector_kernels& kernels) {
  const scored_sequence& s = scored_[static_cast<std::size_t>(n.score)];
  const auto heads = static_cast<std::ptrdiff_t>(shape_->heads) * s.stride;
  const auto count = static_cast<std::ptrdiff_t>(t.group) * s.stride;
  t.score = n.sequence->step->scores;
  t.score_stride = s.stride;
  t.scores = scores_.data() + s.at + n.kv_head * count;
  std::fill_n(t.scores, count, 0.0f);
  const int step = tokens_a_tile(*shape_);
  const attention_task whole = t;
  for (int first = 0; first < n.tokens; first += step) {
    t.tokens = std::min(step, n.tokens - first);
    t.position = whole.position + first;
    t.q = whole.q + first * whole.q_stride;
    t.sink_q = whole.sink_q ? whole.sink_q + first * whole.q_stride : nullptr;
    t.out = whole.out + first * whole.out_stride;
    t.chunk_end = t.chunks();
    kernels.attend(t);
  }
  for (std::ptrdiff_t i = 0; i < count; ++i)
    t.scores[heads + i] += t.scores[i];
}

std::vector<float> attention_units::scores_of(const batch_sequence& sequence) const {
  for (const auto& s : scored_) {
    if (s.sequence != &sequence)
      continue;
    std::vector<float> out(static_cast<std::size_t>(s.positions));
    const float* sums = scores_.data() + s.at + static_cast<std::ptrdiff_t>(shape_->heads) * s.stride;
    const float share = 1.0f / static_cast<float>(shape_->heads * std::max(1, layers_));
    for (int head = 0; head < shape_->heads; ++head)
      for (int i = 0; i < s.positions; ++i)
        out[static_cast<std::size_t>(i)] += sums[head * s.stride + i];
    for (float& score : out)
      score *= share;
    return out;
  }
  return {};
}

} // namespace troupe::cpu
