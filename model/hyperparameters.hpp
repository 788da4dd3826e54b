// What a model file says about the network's shape. Every value is read from the file and range-checked before use;
// nothing is derived where the file speaks (head_dim is not hidden / heads).
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

enum class architecture { qwen3, qwen2, llama };
std::string_view name_of(architecture a) noexcept;

enum class rope_scaling { none, linear, yarn, llama3 };

struct rope_settings {
  float base = 10'000.0f;
  rope_scaling scaling = rope_scaling::none;
  float factor = 1.0f;
  int original_context = 0;
  // llama3 (Llama 3.1): wavelengths between these two are blended.
  float low_frequency_factor = 1.0f;
  float high_frequency_factor = 4.0f;
  // YaRN (Peng et al. 2023); attention_factor 0 means 0.1 ln(factor) + 1.
  float beta_fast = 32.0f;
  float beta_slow = 1.0f;
  float attention_factor = 0.0f;
  // A divisor per frequency, from GGUF's rope_freqs.weight; empty where the file has none. [head_dim / 2]
  std::vector<float> divisors;
  // true: pairs (2i, 2i + 1), as GGUF's permuted llama files; false: pairs (i, i + head_dim / 2).
  bool adjacent_pairs = false;
};

struct hyperparameters {
  architecture arch = architecture::qwen3;
  std::string name;
  int layers = 0;
  int hidden = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int ffn = 0;
  int vocabulary = 0;       // rows of the embedding; the tokenizer may use fewer, the rest is never sampled
  int context_tokens = 0;   // as trained or stated
  float norm_epsilon = 1e-6f;
  rope_settings rope;
  bool tied_output = false;
  bool qk_norm = false;     // q and k heads are RMS-normalised before RoPE (qwen3)
  bool qkv_bias = false;    // qwen2

  int q_width() const noexcept { return heads * head_dim; }
  int kv_width() const noexcept { return kv_heads * head_dim; }
};

} // namespace troupe
