// Attention of a tile of query rows over paged keys and values, on the vector operations V (simd_*.hpp): online softmax
// (Milakov and Gimelshein 2018) over aligned blocks of positions, aligned chunks of blocks merged in order.
//
// A query row's operations and their order depend on its own position alone: not on how many rows share the tile, nor on which
// thread computes which chunk. Positions that a row may not see, later ones and those that its window hides, enter with weight 0,
// those that no row of the tile may see are not touched. Few rows read keys and values as they lie in the page (kv_rows.hpp); many widen a page once and share it.
#pragma once
#include <cmath>
#include <cstdint>

#include "cpu/elementwise_kernels.hpp"
#include "cpu/kv_rows.hpp"
#include "cpu/vector_kernels.hpp"

namespace troupe::cpu {

template <class V>
struct attention {
  using reg = typename V::reg;
  using math = elementwise<V>;
  static constexpr int width = V::width;
  static constexpr int tile_rows = 3;    // query rows a register tile
  static constexpr int tile_tokens = 4;  // keys a register tile of scores
  static constexpr int tile_vectors = 4; // registers a row of a register tile of values
  static constexpr int page_tokens = limits::page_tokens;
  static_assert(tile_vectors * width % int4_group == 0 && page_tokens % width == 0);
  static constexpr float lowest = -__builtin_huge_valf();

  // Where a task's scratch lies.
  struct workspace {
    int rows, dim;             // dim: padded
    std::ptrdiff_t row_floats; // of chunk and total: values, then highest score and sum of weights
    int hidden_begin, hidden_end; // positions that no row sees; whole pages
    float* q;                  // [rows][dim], scaled
    float* sink_q;             // likewise, for the sinks; may be q
    float* chunk;              // [rows][row_floats], the present chunk
    float* total;              // likewise, all chunks so far
    float* scores;             // [rows][attention_block]
    float* correction;         // [rows], of the present block
    float* lane_sums;          // [rows][width], sums of weights of the present chunk, lane by lane
    float* page;               // [page_tokens][dim], widened

    explicit workspace(const attention_task& t) noexcept
        : rows(t.rows()), dim(padded(t.head_dim)), row_floats(static_cast<std::ptrdiff_t>(partial_row(t.head_dim))),
        hidden_begin(t.window.sinks()), hidden_end(t.window.hidden_end(t.position)) {
      const std::ptrdiff_t r = rows, d = dim;
      q = t.scratch;
      sink_q = t.sink_q ? q + r * d : q;
      chunk = q + 2 * r * d;
      total = chunk + r * row_floats;
      scores = total + r * row_floats;
      page = scores + r * attention_block;
      lane_sums = page + page_tokens * d;
      correction = lane_sums + r * half_row_step;
    }
    bool hides(int position) const noexcept { return position >= hidden_begin && position < hidden_end; }
  };

  static void attend(const attention_task& t) noexcept {
    workspace w(t);
    gather_queries(t, t.q, w.q, w.dim);
    if (t.sink_q)
      gather_queries(t, t.sink_q, w.sink_q, w.dim);
    for (int c = t.chunk_begin; c < t.chunk_end; ++c) {
      if (t.hides_chunk(c))
        continue;
      if (t.partial)
        w.chunk = t.partial + c * w.rows * w.row_floats;
      compute_chunk(t, w, c);
      if (!t.partial)
        for (int r = 0; r < w.rows; ++r)
          join(w.total + r * w.row_floats, w.chunk + r * w.row_floats, w.dim, c == 0, sees_any(t, r, c));
    }
    if (t.partial)
      return;
    for (int r = 0; r < w.rows; ++r)
      finish(t, r, w.total + r * w.row_floats);
    if (t.score != attention_score::none)
      score_positions(t, w);
  }

  static void merge(const attention_task& t) noexcept {
    workspace w(t);
    for (int r = 0; r < w.rows; ++r) {
      float* total = w.total + r * w.row_floats;
      for (int c = 0; c < t.chunks(); ++c)
        join(total, t.partial + (c * w.rows + r) * w.row_floats, w.dim, c == 0, sees_any(t, r, c));
      finish(t, r, total);
    }
  }

private:
  // Row r attends to a position of chunk c.
  static bool sees_any(const attention_task& t, int r, int c) noexcept {
    const int position = t.position + r / t.group, begin = c * attention_chunk;
    return position >= begin && (begin < t.window.sinks() || begin + attention_chunk > t.window.hidden_end(position));
  }

  static void gather_queries(const attention_task& t, const float* all, float* gathered, int dim) noexcept {
    const reg scale = V::set(t.scale);
    for (int r = 0; r < t.rows(); ++r) {
      const float* from = all + (r / t.group) * t.q_stride + (r % t.group) * t.head_dim;
      float* to = gathered + static_cast<std::ptrdiff_t>(r) * dim;
      math::over(
          t.head_dim, [&](int i) { V::store(to + i, V::mul(V::load(from + i), scale)); },
          [&](int i, int count) { V::store(to + i, V::mul(math::load_part(from + i, count), scale)); });
      for (int i = (t.head_dim + width - 1) / width * width; i < dim; i += width)
        V::store(to + i, V::set(0.0f));
    }
  }

  static void compute_chunk(const attention_task& t, workspace& w, int c) noexcept {
    for (int r = 0; r < w.rows; ++r) {
      float* row = w.chunk + r * w.row_floats;
      for (int i = 0; i < w.dim; i += width)
        V::store(row + i, V::set(0.0f));
      row[w.dim] = lowest;
      V::store(w.lane_sums + r * width, V::set(0.0f));
    }
    const int end = t.position + t.tokens; // positions that the tile may see
    const int chunk_end = end < (c + 1) * attention_chunk ? end : (c + 1) * attention_chunk;
    for (int begin = c * attention_chunk; begin < chunk_end; begin += attention_block) {
      const int count = chunk_end - begin < attention_block ? chunk_end - begin : attention_block;
      if (w.hides(begin) && begin + count <= w.hidden_end)
        continue;
      score_block(t, w, begin, count);
      for (int r = 0; r < w.rows; ++r) {
        const int position = t.position + r / t.group;
        hide(w, r, w.hidden_begin - begin, t.window.hidden_end(position) - begin, count);
        weigh(w, r, position + 1 - begin, count);
      }
      sum_block(t, w, begin, count);
    }
    for (int r = 0; r < w.rows; ++r)
      w.chunk[r * w.row_floats + w.dim + 1] = V::sum(V::load(w.lane_sums + r * width));
  }

  // Each row's weights once more, now that its highest score and its sum are known, into the task's scores.
  static void score_positions(const attention_task& t, const workspace& w) noexcept {
    const int end = t.position + t.tokens;
    for (int begin = 0; begin < end; begin += attention_block) {
      const int count = end - begin < attention_block ? end - begin : attention_block;
      if (w.hides(begin) && begin + count <= w.hidden_end)
        continue;
      score_block(t, w, begin, count);
      for (int r = 0; r < w.rows; ++r) {
        const int position = t.position + r / t.group;
        const int seen = position + 1 - begin < count ? position + 1 - begin : count;
        if (seen <= 0)
          continue;
        hide(w, r, w.hidden_begin - begin, t.window.hidden_end(position) - begin, count);
        add_scores(t, w, r, begin, seen);
      }
    }
  }

  static void add_scores(const attention_task& t, const workspace& w, int r, int begin, int seen) noexcept {
    float* s = w.scores + static_cast<std::ptrdiff_t>(r) * attention_block;
    const float* total = w.total + r * w.row_floats + w.dim;
    float* out = t.scores + (r % t.group) * t.score_stride + begin;
    const reg highest = V::set(total[0]), sum = V::set(total[1]);
    const int used = (seen + width - 1) / width * width;
    for (int i = seen; i < used; ++i)
      s[i] = lowest;
    for (int i = 0; i < used; i += width) {
      const reg weight = V::div(math::exp(V::sub(V::load(s + i), highest)), sum);
      const reg before = V::load(out + i);
      V::store(out + i, t.score == attention_score::peak ? V::max(before, weight) : V::add(before, weight));
    }
  }

  static const std::byte* page_at(const attention_task& t, const std::byte* base, int position) noexcept {
    return base + t.pages[position / page_tokens] * t.page_stride;
  }

  template <class Rows>
  static float_rows<V> widened(const Rows& rows, int count, const workspace& w) noexcept {
    float* to = w.page;
    for (int token = 0; token < count; ++token)
      for (int i = 0; i < w.dim; i += Rows::span * width, to += Rows::span * width)
        for (int v = 0; v < Rows::span; ++v)
          V::store(to + v * width, rows.load(token, i, v));
    return {w.page, w.dim};
  }

  static void score_block(const attention_task& t, const workspace& w, int begin, int count) noexcept {
    switch (t.types.keys) {
    case kv_type::f16: return score_block_of<kv_rows<V, kv_type::f16>>(t, w, begin, count);
    case kv_type::bf16: return score_block_of<kv_rows<V, kv_type::bf16>>(t, w, begin, count);
    case kv_type::int8: return score_block_of<kv_rows<V, kv_type::int8>>(t, w, begin, count);
    case kv_type::int4: return score_block_of<kv_rows<V, kv_type::int4>>(t, w, begin, count);
    }
  }

  // scores[row][position - begin] for whole pages that reach into [begin, begin + count). Inlined: a call costs a block of few
  // rows 2 in 100.
  template <class Keys>
  [[gnu::always_inline]] static void score_block_of(const attention_task& t, const workspace& w, int begin,
                                                    int count) noexcept {
    for (int at = 0; at < count; at += page_tokens) {
      if (w.hides(begin + at))
        continue;
      const Keys keys = Keys::at(page_at(t, t.keys, begin + at), w.dim);
      const float* q = begin + at < w.hidden_begin ? w.sink_q : w.q;
      if (w.rows <= tile_rows)
        score_page(w, q, keys, at);
      else
        score_page(w, q, widened(keys, page_tokens, w), at);
      multiply_page(w, keys.scale_of(), at);
    }
  }

  // scores[row][at + token] *= scale[token] for a page's tokens.
  static void multiply_page(const workspace& w, const float* scale, int at) noexcept {
    if (!scale)
      return;
    for (int r = 0; r < w.rows; ++r) {
      float* s = w.scores + static_cast<std::ptrdiff_t>(r) * attention_block + at;
      for (int i = 0; i < page_tokens; i += width)
        V::store(s + i, V::mul(V::load(s + i), V::load(scale + i)));
    }
  }

  template <class Keys>
  static void score_page(const workspace& w, const float* q, const Keys& keys, int at) noexcept {
    int r = 0;
    for (; r + 3 <= w.rows; r += 3)
      score_rows<3>(w, q, keys, r, at);
    if (w.rows - r == 2)
      score_rows<2>(w, q, keys, r, at);
    else if (w.rows - r == 1)
      score_rows<1>(w, q, keys, r, at);
  }

  template <int Rows, class Keys>
  static void score_rows(const workspace& w, const float* queries, Keys keys, int first, int at) noexcept {
    const std::ptrdiff_t d = w.dim;
    const float* q = queries + first * d;
    float* out = w.scores + static_cast<std::ptrdiff_t>(first) * attention_block + at;
    for (int token = 0; token < page_tokens; token += tile_tokens) {
      reg sum[Rows][tile_tokens];
      for (int r = 0; r < Rows; ++r)
        for (int j = 0; j < tile_tokens; ++j)
          sum[r][j] = V::set(0.0f);
      for (int i = 0; i < w.dim; i += Keys::span * width)
        for (int v = 0; v < Keys::span; ++v) {
          reg query[Rows];
          for (int r = 0; r < Rows; ++r)
            query[r] = V::load(q + r * d + i + v * width);
          for (int j = 0; j < tile_tokens; ++j) {
            const reg key = keys.load(token + j, i, v);
            for (int r = 0; r < Rows; ++r)
              sum[r][j] = V::fma(query[r], key, sum[r][j]);
          }
        }
      for (int r = 0; r < Rows; ++r)
        V::store_sums(out + r * attention_block + token, sum[r][0], sum[r][1], sum[r][2], sum[r][3]);
    }
  }

  // Scores of positions [begin, end) of the block, which row r does not see; `count` are read.
  static void hide(const workspace& w, int r, int begin, int end, int count) noexcept {
    float* s = w.scores + static_cast<std::ptrdiff_t>(r) * attention_block;
    for (int i = begin > 0 ? begin : 0; i < end && i < count; ++i)
      s[i] = lowest;
  }

  // Turns a row's scores into weights relative to its highest score so far. `seen`: positions of the block that it attends to;
  // `count`: positions that the tile reads.
  static void weigh(const workspace& w, int r, int seen, int count) noexcept {
    float* s = w.scores + static_cast<std::ptrdiff_t>(r) * attention_block;
    float* highest = w.chunk + static_cast<std::ptrdiff_t>(r) * w.row_floats + w.dim;
    if (seen <= 0) {
      w.correction[r] = 1.0f;
      for (int i = 0; i < count; ++i)
        s[i] = 0.0f;
      return;
    }
    if (seen > attention_block)
      seen = attention_block;
    const int used = (seen + width - 1) / width * width;
    for (int i = seen; i < used; ++i)
      s[i] = lowest;
    reg top = V::load(s);
    for (int i = width; i < used; i += width)
      top = V::max(top, V::load(s + i));
    const float block_highest = V::highest(top);
    if (block_highest == lowest) { // all of it is hidden
      w.correction[r] = 1.0f;
      for (int i = 0; i < count; ++i)
        s[i] = 0.0f;
      return;
    }
    const float now = block_highest > *highest ? block_highest : *highest;
    const reg shift = V::set(now);
    reg total = V::set(0.0f);
    for (int i = 0; i < used; i += width) {
      const reg weight = math::exp(V::sub(V::load(s + i), shift));
      V::store(s + i, weight);
      total = V::add(total, weight);
    }
    for (int i = used; i < count; ++i)
      s[i] = 0.0f;
    const reg correction = math::exp(V::set(*highest - now));
    V::store(w.lane_sums + r * width, V::fma(V::load(w.lane_sums + r * width), correction, total));
    float lanes[width];
    V::store(lanes, correction);
    w.correction[r] = lanes[0];
    *highest = now;
  }

  static void sum_block(const attention_task& t, const workspace& w, int begin, int count) noexcept {
    switch (t.types.values) {
    case kv_type::f16: return sum_block_of<kv_rows<V, kv_type::f16>>(t, w, begin, count);
    case kv_type::bf16: return sum_block_of<kv_rows<V, kv_type::bf16>>(t, w, begin, count);
    case kv_type::int8: return sum_block_of<kv_rows<V, kv_type::int8>>(t, w, begin, count);
    case kv_type::int4: return sum_block_of<kv_rows<V, kv_type::int4>>(t, w, begin, count);
    }
  }

  // chunk[row] = chunk[row] * correction + sum over the block's positions of weight * value.
  template <class Values>
  [[gnu::always_inline]] static void sum_block_of(const attention_task& t, const workspace& w, int begin, int count) noexcept {
    bool first = true; // of the block's pages
    for (int at = 0; at < count; at += page_tokens) {
      if (w.hides(begin + at))
        continue;
      const int tokens = count - at < page_tokens ? count - at : page_tokens;
      const Values values = Values::at(page_at(t, t.values, begin + at), w.dim);
      multiply_page(w, values.scale_of(), at);
      if (w.rows <= tile_rows)
        sum_page(w, values, at, tokens, first);
      else
        sum_page(w, widened(values, tokens, w), at, tokens, first);
      first = false;
    }
  }

  template <class Values>
  static void sum_page(const workspace& w, const Values& values, int at, int tokens, bool correct) noexcept {
    int r = 0;
    for (; r + 3 <= w.rows; r += 3)
      sum_rows<3>(w, values, r, at, tokens, correct);
    if (w.rows - r == 2)
      sum_rows<2>(w, values, r, at, tokens, correct);
    else if (w.rows - r == 1)
      sum_rows<1>(w, values, r, at, tokens, correct);
  }

  template <int Rows, class Values>
  static void sum_rows(const workspace& w, const Values& values, int first, int at, int tokens, bool correct) noexcept {
    int i = 0;
    for (; i + tile_vectors * width <= w.dim; i += tile_vectors * width)
      sum_columns<Rows, tile_vectors>(w, values, first, at, tokens, correct, i);
    for (; i < w.dim; i += width)
      sum_columns<Rows, 1>(w, values, first, at, tokens, correct, i);
  }

  template <int Rows, int Vectors, class Values>
  static void sum_columns(const workspace& w, Values values, int first, int at, int tokens, bool correct,
                          int column) noexcept {
    const float* weights = w.scores + static_cast<std::ptrdiff_t>(first) * attention_block + at;
    float* out = w.chunk + first * w.row_floats + column;
    reg sum[Rows][Vectors];
    for (int r = 0; r < Rows; ++r) {
      const reg correction = V::set(correct ? w.correction[first + r] : 1.0f);
      for (int v = 0; v < Vectors; ++v)
        sum[r][v] = V::mul(V::load(out + r * w.row_floats + v * width), correction);
    }
    for (int token = 0; token < tokens; ++token) {
      reg value[Vectors];
      for (int v = 0; v < Vectors; ++v)
        value[v] = values.load(token, column, v);
      for (int r = 0; r < Rows; ++r) {
        const reg weight = V::set(weights[r * attention_block + token]);
        for (int v = 0; v < Vectors; ++v)
          sum[r][v] = V::fma(weight, value[v], sum[r][v]);
      }
    }
    for (int r = 0; r < Rows; ++r)
      for (int v = 0; v < Vectors; ++v)
        V::store(out + r * w.row_floats + v * width, sum[r][v]);
  }

  // Adds a chunk's row to the total; `first` replaces it. A row that sees nothing of the chunk is left alone.
  static void join(float* total, const float* chunk, int dim, bool first, bool seen) noexcept {
    if (first) {
      for (int i = 0; i < dim + 2; ++i)
        total[i] = chunk[i];
      return;
    }
    if (!seen)
      return;
    const float highest = chunk[dim] > total[dim] ? chunk[dim] : total[dim];
    float factors[2 * width];
    V::store(factors, math::exp(V::set(total[dim] - highest)));
    V::store(factors + width, math::exp(V::set(chunk[dim] - highest)));
    const reg old_factor = V::set(factors[0]), new_factor = V::set(factors[width]);
    for (int i = 0; i < dim; i += width)
      V::store(total + i, V::fma(V::load(chunk + i), new_factor, V::mul(V::load(total + i), old_factor)));
    total[dim] = highest;
    total[dim + 1] = total[dim + 1] * factors[0] + chunk[dim + 1] * factors[width];
  }

  static void finish(const attention_task& t, int r, const float* row) noexcept {
    float* out = t.out + (r / t.group) * t.out_stride + (r % t.group) * t.head_dim;
    const reg sum = V::set(row[padded(t.head_dim) + 1]);
    math::over(
        t.head_dim, [&](int i) { V::store(out + i, V::div(V::load(row + i), sum)); },
        [&](int i, int count) { math::store_part(out + i, count, V::div(V::load(row + i), sum)); });
  }
};

} // namespace troupe::cpu
