#include "model/forward.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.hpp"

namespace troupe {
namespace {

using matrix = std::vector<std::vector<float>>; // [token][width]

std::size_t index(int i) { return static_cast<std::size_t>(i); }

// Eight running sums, added up in a fixed order: quicker than one, and nearer to the true value.
float dot(const float* a, const float* b, std::size_t n) {
  std::array<float, 8> sums{};
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (std::size_t j = 0; j < 8; ++j)
      sums[j] += a[i + j] * b[i + j];
  for (; i < n; ++i)
    sums[0] += a[i] * b[i];
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

std::vector<float> floats_of(const tensor_view& w, std::int64_t row) {
  std::vector<float> out(static_cast<std::size_t>(w.columns));
  dequantize_row(w.type, w.row(row), out.data(), w.columns);
  return out;
}

// y = W x for every token's x.
matrix multiply(const tensor_view& w, const matrix& x) {
  matrix y(x.size(), std::vector<float>(static_cast<std::size_t>(w.rows)));
  for (std::int64_t r = 0; r < w.rows; ++r) {
    const auto row = floats_of(w, r);
    for (std::size_t t = 0; t < x.size(); ++t)
      y[t][static_cast<std::size_t>(r)] = dot(row.data(), x[t].data(), row.size());
  }
  return y;
}

void add_to(std::vector<float>& x, const std::vector<float>& y) {
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] += y[i];
}

// y = W x + b, where b may be absent.
matrix multiply(const tensor_view& w, const tensor_view& bias, const matrix& x) {
  matrix y = multiply(w, x);
  if (bias) {
    const auto b = floats_of(bias, 0);
    for (auto& row : y)
      add_to(row, b);
  }
  return y;
}

// RMSNorm (Zhang and Sennrich 2019), in place: x / sqrt(mean(x^2) + epsilon) * weight.
void normalise(std::span<float> x, const std::vector<float>& weight, float epsilon) {
  const float mean = dot(x.data(), x.data(), x.size()) / static_cast<float>(x.size());
  const float scale = 1.0f / std::sqrt(mean + epsilon);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = x[i] * scale * weight[i];
}

matrix normalised(const matrix& x, const tensor_view& weight, float epsilon) {
  matrix y = x;
  const auto w = floats_of(weight, 0);
  for (auto& row : y)
    normalise(row, w, epsilon);
  return y;
}

void softmax(std::vector<float>& x) {
  const float highest = *std::max_element(x.begin(), x.end());
  float total = 0;
  for (float& v : x) {
    v = std::exp(v - highest);
    total += v;
  }
  for (float& v : x)
    v /= total;
}

float silu(float x) { return x / (1.0f + std::exp(-x)); }

} // namespace

reference_model::reference_model(const model_weights& weights, attention_window window)
    : weights_(weights), window_(window), rope_(make_rope_table(weights.shape.rope, weights.shape.head_dim)) {
  reset();
}

void reference_model::reset() {
  position_ = 0;
  keys_.assign(weights_.layers.size(), {});
  values_.assign(weights_.layers.size(), {});
}

std::vector<float> reference_model::feed(std::span<const token_id> tokens) {
  auto x = hidden_states(tokens);
  x.erase(x.begin(), x.end() - 1);
  return std::move(multiply(weights_.output, x).front());
}

std::vector<std::vector<float>> reference_model::feed_all(std::span<const token_id> tokens) {
  return multiply(weights_.output, hidden_states(tokens));
}

std::vector<std::vector<std::vector<std::vector<float>>>> reference_model::feed_weights(std::span<const token_id> tokens) {
  std::vector<std::vector<std::vector<std::vector<float>>>> out(
      weights_.layers.size(), std::vector<std::vector<std::vector<float>>>(index(weights_.shape.heads)));
  watch_ = &out;
  hidden_states(tokens);
  watch_ = nullptr;
  return out;
}

void reference_model::keep(std::span<const int> kept) {
  const std::size_t width = index(weights_.shape.head_dim), kv_width = index(weights_.shape.kv_width());
  for (std::size_t layer = 0; layer < keys_.size(); ++layer) {
    std::vector<float> keys, values;
    for (std::size_t i = 0; i < kept.size(); ++i) {
      const auto key = keys_[layer].begin() + kept[i] * static_cast<std::ptrdiff_t>(kv_width);
      const auto value = values_[layer].begin() + kept[i] * static_cast<std::ptrdiff_t>(kv_width);
      keys.insert(keys.end(), key, key + static_cast<std::ptrdiff_t>(kv_width));
      values.insert(values.end(), value, value + static_cast<std::ptrdiff_t>(kv_width));
      for (std::size_t at = keys.size() - kv_width; at < keys.size(); at += width)
        turn({keys.data() + at, width}, static_cast<int>(i) - kept[i], 1.0f);
    }
    keys_[layer] = std::move(keys);
    values_[layer] = std::move(values);
  }
  position_ = static_cast<int>(kept.size());
}

reference_model::matrix reference_model::hidden_states(std::span<const token_id> tokens) {
  TROUPE_CHECK(!tokens.empty());
  matrix x;
  for (const token_id token : tokens) {
    TROUPE_CHECK(token >= 0 && token < weights_.token_embedding.rows);
    x.push_back(floats_of(weights_.token_embedding, token));
  }
  for (std::size_t layer = 0; layer < weights_.layers.size(); ++layer) {
    attend(layer, x);
    feed_forward(layer, x);
  }
  position_ += static_cast<int>(tokens.size());
  return normalised(x, weights_.output_norm, weights_.shape.norm_epsilon);
}

// Rotates the pairs of one head vector by its position's angles (Su et al. 2021), times `magnitude`.
void reference_model::turn(std::span<float> head, int position, float magnitude) const {
  const std::size_t pairs = head.size() / 2;
  for (std::size_t i = 0; i < pairs; ++i) {
    const float angle = static_cast<float>(position) * rope_.frequencies[i];
    const float cosine = std::cos(angle) * magnitude;
    const float sine = std::sin(angle) * magnitude;
    float& a = weights_.shape.rope.adjacent_pairs ? head[2 * i] : head[i];
    float& b = weights_.shape.rope.adjacent_pairs ? head[2 * i + 1] : head[i + pairs];
    const float turned = a * cosine - b * sine;
    b = a * sine + b * cosine;
    a = turned;
  }
}

// x += W_o attention(norm(x)): causal, each group of query heads shares one key/value head (Ainslie et al. 2023). Where the
// window hides the middle, the sinks are seen as if it had never been.
void reference_model::attend(std::size_t layer, matrix& x) {
  const auto& shape = weights_.shape;
  const auto& w = weights_.layers[layer];
  const std::size_t width = index(shape.head_dim);
  const std::size_t kv_width = index(shape.kv_width());
  const std::size_t group = index(shape.heads / shape.kv_heads);

  const matrix input = normalised(x, w.attention_norm, shape.norm_epsilon);
  matrix q = multiply(w.q, w.q_bias, input);
  matrix k = multiply(w.k, w.k_bias, input);
  const matrix v = multiply(w.v, w.v_bias, input);

  const auto q_norm = w.q_norm ? floats_of(w.q_norm, 0) : std::vector<float>{};
  const auto k_norm = w.k_norm ? floats_of(w.k_norm, 0) : std::vector<float>{};
  const auto prepare = [&](std::vector<float>& row, const std::vector<float>& norm, int position) {
    for (std::size_t at = 0; at < row.size(); at += width) {
      const std::span<float> head(row.data() + at, width);
      if (!norm.empty()) // qwen3: each head is normalised before it is turned
        normalise(head, norm, shape.norm_epsilon);
      turn(head, position, rope_.magnitude);
    }
  };

  matrix mixed(x.size(), std::vector<float>(index(shape.q_width())));
  for (std::size_t t = 0; t < x.size(); ++t) {
    const int position = position_ + static_cast<int>(t);
    auto sink_q = q[t];
    prepare(sink_q, q_norm, window_.position_for_sinks(position));
    prepare(q[t], q_norm, position);
    prepare(k[t], k_norm, position);
    keys_[layer].insert(keys_[layer].end(), k[t].begin(), k[t].end());
    values_[layer].insert(values_[layer].end(), v[t].begin(), v[t].end());

    for (std::size_t h = 0; h < index(shape.heads); ++h) {
      const std::size_t shared = h / group * width; // this head's key and value within a position
      std::vector<float> scores(index(position + 1));
      for (int s = 0; s <= position; ++s) {
        const bool hidden = s >= window_.sinks() && s < window_.hidden_end(position);
        const float* query = (s < window_.sinks() ? sink_q : q[t]).data() + h * width;
        const float* key = keys_[layer].data() + index(s) * kv_width + shared;
        scores[index(s)] = hidden ? -HUGE_VALF : dot(query, key, width) / std::sqrt(static_cast<float>(width));
      }
      softmax(scores);
      if (watch_)
        (*watch_)[layer][h].push_back(scores);
      float* out = mixed[t].data() + h * width;
      for (std::size_t s = 0; s < scores.size(); ++s)
        for (std::size_t i = 0; i < width; ++i)
          out[i] += scores[s] * values_[layer][s * kv_width + shared + i];
    }
  }

  const matrix attended = multiply(w.o, mixed);
  for (std::size_t t = 0; t < x.size(); ++t)
    add_to(x[t], attended[t]);
}

// x += W_down (silu(W_gate n) * W_up n), n = norm(x) (SwiGLU, Shazeer 2020).
void reference_model::feed_forward(std::size_t layer, matrix& x) {
  const auto& w = weights_.layers[layer];
  const matrix input = normalised(x, w.ffn_norm, weights_.shape.norm_epsilon);
  matrix gate = multiply(w.gate, input);
  const matrix up = multiply(w.up, input);
  for (std::size_t t = 0; t < x.size(); ++t)
    for (std::size_t i = 0; i < gate[t].size(); ++i)
      gate[t][i] = silu(gate[t][i]) * up[t][i];
  const matrix down = multiply(w.down, gate);
  for (std::size_t t = 0; t < x.size(); ++t)
    add_to(x[t], down[t]);
}

} // namespace troupe
