#include "random_model.hpp"

#include <cstddef>
#include <cstring>
#include <deque>
#include <memory>

#include "base/check.hpp"
#include "base/random.hpp"

namespace troupe::tests {
namespace {

std::uint64_t word(std::uint64_t key, std::uint64_t i) { return mix64(key + i); }

std::uint64_t f16_bits(std::uint64_t sign, std::uint64_t exponent, std::uint64_t mantissa) {
  return (sign << 15) | (exponent << 10) | mantissa;
}

template <class T>
void put(std::byte* at, std::uint64_t bits) {
  const T value = static_cast<T>(bits);
  std::memcpy(at, &value, sizeof(T));
}

// One plain weight: any sign and mantissa, magnitudes in [2^-7, 2^-3).
void fill_plain(weight_type type, std::byte* out, std::uint64_t count, std::uint64_t key) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t w = word(key, i);
    const std::uint64_t sign = w >> 63;
    const std::uint64_t exponent = 120 + ((w >> 61) & 3);
    switch (type) {
      case weight_type::f32: put<std::uint32_t>(out + 4 * i, (sign << 31) | (exponent << 23) | (w & 0x7f'ffff)); break;
      case weight_type::f16: put<std::uint16_t>(out + 2 * i, f16_bits(sign, exponent - 127 + 15, w & 0x3ff)); break;
      default: put<std::uint16_t>(out + 2 * i, (sign << 15) | (exponent << 7) | (w & 0x7f)); break;
    }
  }
}

// Scale words: mantissas in bits 0..9 and 10..19, sign in bit 63. Exponents are chosen so that weights spread about 1/16 around
// 0; Q6_K's d is subnormal in half of the blocks.
void put_scales(weight_type type, std::byte* block, std::uint64_t w) {
  const std::uint64_t first = w & 0x3ff;
  const std::uint64_t second = (w >> 10) & 0x3ff;
  const std::uint64_t sign = w >> 63;
  switch (type) {
    case weight_type::q8_0: put<std::uint16_t>(block, f16_bits(sign, 4, first)); break;
    case weight_type::q4_0: put<std::uint16_t>(block, f16_bits(sign, 8, first)); break;
    case weight_type::q5_0: put<std::uint16_t>(block, f16_bits(sign, 7, first)); break;
    case weight_type::q4_1:
      put<std::uint16_t>(block, f16_bits(sign, 8, first));
      put<std::uint16_t>(block + 2, f16_bits(sign ^ 1, 11, second));
      break;
    case weight_type::q5_1:
      put<std::uint16_t>(block, f16_bits(sign, 7, first));
      put<std::uint16_t>(block + 2, f16_bits(sign ^ 1, 11, second));
      break;
    case weight_type::q4_k:
      put<std::uint16_t>(block, f16_bits(0, 3, first));
      put<std::uint16_t>(block + 2, f16_bits(0, 6, second));
      break;
    case weight_type::q5_k:
      put<std::uint16_t>(block, f16_bits(0, 2, first));
      put<std::uint16_t>(block + 2, f16_bits(0, 6, second));
      break;
    case weight_type::q6_k: put<std::uint16_t>(block + 208, f16_bits(sign, (w >> 62) & 1, first)); break;
    default: TROUPE_CHECK(false);
  }
}

void fill_blocks(weight_type type, std::byte* out, std::uint64_t blocks, std::uint64_t key) {
  const auto size = static_cast<std::uint64_t>(info_of(type).block_bytes);
  for (std::uint64_t b = 0; b < blocks; ++b) {
    std::byte* block = out + b * size;
    for (std::uint64_t i = 0; i < size; ++i)
      block[i] = static_cast<std::byte>(word(key, 64 * b + 1 + i / 8) >> (8 * (i % 8)));
    put_scales(type, block, word(key, 64 * b));
  }
}

class builder {
public:
  builder(weight_type type, std::uint64_t seed) : type_(type), seed_(seed), buffers_(std::make_shared<buffers>()) {}

  tensor_view matrix(std::uint64_t number, int rows, int columns) {
    tensor_view view = reserve(type_, rows, columns);
    const auto& info = info_of(type_);
    const auto blocks = static_cast<std::uint64_t>(rows) * static_cast<std::uint64_t>(columns / info.block_weights);
    TROUPE_CHECK(columns % info.block_weights == 0);
    if (info.block_weights == 1)
      fill_plain(type_, buffers_->back().data(), blocks, key(number));
    else
      fill_blocks(type_, buffers_->back().data(), blocks, key(number));
    return view;
  }

  // f32, uniform in [low, low + 1).
  tensor_view vector(std::uint64_t number, int count, float low) {
    tensor_view view = reserve(weight_type::f32, 1, count);
    for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(count); ++i) {
      const float value = low + static_cast<float>(word(key(number), i) >> 41) * 0x1p-23f;
      std::memcpy(buffers_->back().data() + 4 * i, &value, sizeof value);
    }
    return view;
  }

  std::shared_ptr<const void> storage() const { return buffers_; }

private:
  using buffers = std::deque<std::vector<std::byte>>; // addresses of elements stay

  std::uint64_t key(std::uint64_t number) const { return mix64(seed_ * 4096 + number); }

  tensor_view reserve(weight_type type, int rows, int columns) {
    tensor_view view{type, rows, columns, nullptr};
    view.data = buffers_->emplace_back(view.bytes()).data();
    return view;
  }

  weight_type type_;
  std::uint64_t seed_;
  std::shared_ptr<buffers> buffers_;
};

} // namespace

random_model make_random_model(architecture arch, weight_type type, std::uint64_t seed, const random_model_sizes& sizes) {
  random_model out;
  auto& shape = out.weights.shape;
  shape.arch = arch;
  shape.name = "random";
  shape.layers = sizes.layers;
  shape.hidden = sizes.hidden;
  shape.heads = sizes.heads;
  shape.kv_heads = sizes.kv_heads;
  shape.head_dim = sizes.head_dim;
  shape.ffn = sizes.ffn;
  shape.vocabulary = sizes.vocabulary;
  shape.context_tokens = 4096;
  shape.rope = sizes.rope;
  shape.tied_output = sizes.tied_output;
  shape.qk_norm = arch == architecture::qwen3;
  shape.qkv_bias = arch == architecture::qwen2;

  builder make(type, seed);
  auto& w = out.weights;
  w.token_embedding = make.matrix(0, sizes.vocabulary, sizes.hidden);
  w.output_norm = make.vector(1, sizes.hidden, 0.5f);
  w.output = sizes.tied_output ? w.token_embedding : make.matrix(2, sizes.vocabulary, sizes.hidden);
  for (int i = 0; i < sizes.layers; ++i) {
    const std::uint64_t n = 3 + 16 * static_cast<std::uint64_t>(i);
    auto& layer = w.layers.emplace_back();
    layer.attention_norm = make.vector(n, sizes.hidden, 0.5f);
    layer.q = make.matrix(n + 1, shape.q_width(), sizes.hidden);
    layer.k = make.matrix(n + 2, shape.kv_width(), sizes.hidden);
    layer.v = make.matrix(n + 3, shape.kv_width(), sizes.hidden);
    if (shape.qkv_bias) {
      layer.q_bias = make.vector(n + 4, shape.q_width(), -0.5f);
      layer.k_bias = make.vector(n + 5, shape.kv_width(), -0.5f);
      layer.v_bias = make.vector(n + 6, shape.kv_width(), -0.5f);
    }
    if (shape.qk_norm) {
      layer.q_norm = make.vector(n + 7, sizes.head_dim, 0.5f);
      layer.k_norm = make.vector(n + 8, sizes.head_dim, 0.5f);
    }
    layer.o = make.matrix(n + 9, sizes.hidden, shape.q_width());
    layer.ffn_norm = make.vector(n + 10, sizes.hidden, 0.5f);
    layer.gate = make.matrix(n + 11, sizes.ffn, sizes.hidden);
    layer.up = make.matrix(n + 12, sizes.ffn, sizes.hidden);
    layer.down = make.matrix(n + 13, sizes.hidden, sizes.ffn);
  }
  w.storage = make.storage();
  return out;
}

std::vector<token_id> random_tokens(std::uint64_t seed, int count, int vocabulary) {
  std::vector<token_id> out;
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(count); ++i)
    out.push_back(static_cast<token_id>(word(mix64(seed * 4096 + 4095), i) % static_cast<std::uint64_t>(vocabulary)));
  return out;
}

} // namespace troupe::tests
