// make_random_model SHAPE TYPE OUT.gguf [layers]: a file of a published model's shape with random weights, for speed
// comparisons without a download. Troupe and llama.cpp both load it; what it says is noise.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "model/gguf_writer.hpp"
#include "model/weight_types.hpp"

using namespace troupe;

namespace {

struct model_shape {
  const char* name;
  int layers, hidden, heads, kv_heads, head_dim, ffn, vocabulary;
};
constexpr model_shape shapes[] = {
    {"qwen3-tiny", 4, 512, 8, 4, 64, 1024, 4096},
    {"qwen3-0.6b", 28, 1024, 16, 8, 128, 3072, 151'936},
    {"qwen3-1.7b", 28, 2048, 16, 8, 128, 6144, 151'936},
    {"qwen3-4b", 36, 2560, 32, 8, 128, 9728, 151'936},
};
constexpr weight_type types[] = {weight_type::f16,  weight_type::bf16, weight_type::q8_0, weight_type::q4_0,
                                 weight_type::q4_1, weight_type::q4_k, weight_type::q6_k};

// Random blocks of one type, made once; tensors are filled with runs of it from random starts.
class block_pool {
public:
  explicit block_pool(weight_type type) : type_(type), block_(static_cast<std::size_t>(info_of(type).block_bytes)) {
    std::vector<float> weights(pool_weights);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      double sum = 0; // of 4 uniforms: nearly normal, deviation 0.02
      for (std::uint64_t j = 0; j < 4; ++j)
        sum += uniform_at(7, i * 4 + j) - 0.5;
      weights[i] = static_cast<float>(sum * 0.02 / 0.577);
    }
    bytes_.resize(pool_weights / static_cast<std::size_t>(info_of(type).block_weights) * block_);
    quantize_row(type, weights.data(), bytes_.data(), static_cast<std::int64_t>(pool_weights));
  }

  weight_type type() const { return type_; }

  void write(std::ostream& out, std::uint64_t bytes, std::uint64_t key) const {
    for (std::uint64_t run = 0; bytes > 0; ++run) {
      const std::size_t start = random_at(key, run) % (bytes_.size() / block_) * block_;
      const std::uint64_t count = std::min<std::uint64_t>(bytes, bytes_.size() - start);
      out.write(reinterpret_cast<const char*>(bytes_.data() + start), static_cast<std::streamsize>(count));
      bytes -= count;
    }
  }

private:
  static constexpr std::size_t pool_weights = 1u << 20;
  weight_type type_;
  std::size_t block_;
  std::vector<std::byte> bytes_;
};

// A byte-level vocabulary of the wanted size: the 256 bytes in GPT-2's spelling, one merge, and words that nothing produces.
void add_tokenizer(gguf_writer& file, int vocabulary) {
  constexpr std::int32_t normal = 1, control = 3;
  std::vector<std::string> tokens;
  std::vector<std::int32_t> kinds;
  int moved = 0;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    const int point = printable ? byte : 256 + moved++;
    std::string text;
    if (point < 0x80) {
      text = static_cast<char>(point);
    } else {
      text += static_cast<char>(0xc0 | (point >> 6));
      text += static_cast<char>(0x80 | (point & 0x3f));
    }
    tokens.push_back(text);
  }
  tokens.push_back("ab");
  while (static_cast<int>(tokens.size()) < vocabulary - 2)
    tokens.push_back("unused" + std::to_string(tokens.size()));
  kinds.assign(tokens.size(), normal);
  for (const char* name : {"<|endoftext|>", "<|im_end|>"}) {
    tokens.emplace_back(name);
    kinds.push_back(control);
  }
  file.add_text("tokenizer.ggml.model", "gpt2");
  file.add_text("tokenizer.ggml.pre", "qwen2");
  file.add_texts("tokenizer.ggml.tokens", tokens);
  file.add_i32s("tokenizer.ggml.token_type", kinds);
  file.add_texts("tokenizer.ggml.merges", {"a b"});
  file.add_u32("tokenizer.ggml.bos_token_id", static_cast<std::uint32_t>(vocabulary - 2));
  file.add_u32("tokenizer.ggml.eos_token_id", static_cast<std::uint32_t>(vocabulary - 1));
  file.add_u32("tokenizer.ggml.padding_token_id", static_cast<std::uint32_t>(vocabulary - 2));
  file.add_bool("tokenizer.ggml.add_bos_token", false);
}

void add_shape(gguf_writer& file, const model_shape& s) {
  const auto number = [&](const char* key, int value) {
    file.add_u32(std::string("qwen3.") + key, static_cast<std::uint32_t>(value));
  };
  file.add_text("general.architecture", "qwen3");
  file.add_text("general.name", std::string(s.name) + ", random weights");
  number("context_length", 32'768);
  number("embedding_length", s.hidden);
  number("block_count", s.layers);
  number("feed_forward_length", s.ffn);
  number("attention.head_count", s.heads);
  number("attention.head_count_kv", s.kv_heads);
  number("attention.key_length", s.head_dim);
  number("attention.value_length", s.head_dim);
  file.add_f32("qwen3.attention.layer_norm_rms_epsilon", 1e-6f);
  file.add_f32("qwen3.rope.freq_base", 1e6f);
}

int write_model(const model_shape& s, weight_type type, const std::string& path) {
  gguf_writer file;
  add_shape(file, s);
  add_tokenizer(file, s.vocabulary);
  const block_pool pool(type);
  struct planned {
    std::size_t number;
    bool norm;
  };
  std::vector<planned> tensors;
  const auto matrix = [&](const std::string& name, std::int64_t rows, std::int64_t columns) {
    tensors.push_back({file.add_tensor(name, type, {rows, columns}), false});
  };
  const auto norm = [&](const std::string& name, std::int64_t width) {
    tensors.push_back({file.add_tensor(name, weight_type::f32, {width}), true});
  };
  matrix("token_embd.weight", s.vocabulary, s.hidden);
  norm("output_norm.weight", s.hidden);
  for (int i = 0; i < s.layers; ++i) {
    const std::string at = "blk." + std::to_string(i) + ".";
    norm(at + "attn_norm.weight", s.hidden);
    matrix(at + "attn_q.weight", s.heads * s.head_dim, s.hidden);
    matrix(at + "attn_k.weight", s.kv_heads * s.head_dim, s.hidden);
    matrix(at + "attn_v.weight", s.kv_heads * s.head_dim, s.hidden);
    norm(at + "attn_q_norm.weight", s.head_dim);
    norm(at + "attn_k_norm.weight", s.head_dim);
    matrix(at + "attn_output.weight", s.hidden, s.heads * s.head_dim);
    norm(at + "ffn_norm.weight", s.hidden);
    matrix(at + "ffn_gate.weight", s.ffn, s.hidden);
    matrix(at + "ffn_up.weight", s.ffn, s.hidden);
    matrix(at + "ffn_down.weight", s.hidden, s.ffn);
  }

  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  const auto header = file.header();
  out.write(reinterpret_cast<const char*>(header.data()), static_cast<std::streamsize>(header.size()));
  const std::vector<float> ones(static_cast<std::size_t>(s.hidden), 1.0f);
  std::uint64_t at = 0;
  const auto fill_to = [&](std::uint64_t offset) {
    for (; at < offset; ++at)
      out.put(0);
  };
  for (const auto& t : tensors) {
    fill_to(file.offset_of(t.number));
    const std::uint64_t bytes = file.bytes_of(t.number);
    if (t.norm)
      out.write(reinterpret_cast<const char*>(ones.data()), static_cast<std::streamsize>(bytes));
    else
      pool.write(out, bytes, t.number);
    at += bytes;
  }
  fill_to(file.data_bytes());
  out.close();
  if (!out) {
    std::cerr << "make_random_model: cannot write " << path << "\n";
    return 1;
  }
  return 0;
}

} // namespace

int main(int count, char** arguments) {
  const std::vector<std::string> args(arguments + 1, arguments + count);
  if (args.size() == 3 || args.size() == 4)
    for (auto s : shapes)
      for (const weight_type t : types)
        if (args[0] == s.name && args[1] == info_of(t).name) {
          s.layers = args.size() == 4 ? std::max(1, std::atoi(args[3].c_str())) : s.layers;
          return write_model(s, t, args[2]);
        }
  std::cerr << "usage: make_random_model SHAPE TYPE OUT.gguf [layers]\n  shapes:";
  for (const auto& s : shapes)
    std::cerr << ' ' << s.name;
  std::cerr << "\n  types:";
  for (const weight_type t : types)
    std::cerr << ' ' << info_of(t).name;
  std::cerr << "\n";
  return 2;
}
