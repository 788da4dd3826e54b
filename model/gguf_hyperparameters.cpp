#include <cmath>

#include "config/limits.hpp"
#include "model/gguf_model.hpp"
#include "model/model_file_checks.hpp"

namespace troupe {

namespace {

void read_architecture(gguf_fields& fields, hyperparameters& shape) {
  const std::string name = fields.text("general.architecture");
  for (const auto known : {architecture::qwen3, architecture::qwen2, architecture::llama})
    if (name == name_of(known)) {
      shape.arch = known;
      return;
    }
  fields.fail_at("general.architecture", in_quotes(name) + " is not supported; qwen3, qwen2 and llama are", errc::unsupported);
}

void read_rope(gguf_fields& fields, const std::string& arch, hyperparameters& shape) {
  rope_settings& rope = shape.rope;
  rope.base = static_cast<float>(fields.number(arch + ".rope.freq_base", 1.0, 1e12, 10'000.0));
  rope.adjacent_pairs = shape.arch == architecture::llama;
  const std::string key = arch + ".rope.scaling.";
  const std::string scaling = fields.text(key + "type", "none");
  if (fields.failed() || scaling == "none")
    return;
  if (scaling != "linear" && scaling != "yarn")
    return fields.fail_at(key + "type", in_quotes(scaling) + " is not supported; none, linear and yarn are", errc::unsupported);
  rope.scaling = scaling == "linear" ? rope_scaling::linear : rope_scaling::yarn;
  rope.factor = static_cast<float>(fields.number(key + "factor", 1.0, 1e6));
  if (rope.scaling == rope_scaling::linear)
    return;
  rope.original_context =
      static_cast<int>(fields.integer(key + "original_context_length", 1, limits::context_tokens_max, shape.context_tokens));
  rope.beta_fast = static_cast<float>(fields.number(key + "yarn_beta_fast", 1e-3, 1e6, rope.beta_fast));
  rope.beta_slow = static_cast<float>(fields.number(key + "yarn_beta_slow", 1e-3, 1e6, rope.beta_slow));
  // GGUF's number multiplies YaRN's own magnitude; ours is the product.
  const double times = fields.number(key + "attn_factor", 1e-3, 1e3, 1.0);
  rope.attention_factor = static_cast<float>(times * (0.1 * std::log(static_cast<double>(rope.factor)) + 1.0));
}

} // namespace

hyperparameters gguf_hyperparameters(gguf_fields& fields) {
  hyperparameters shape;
  read_architecture(fields, shape);
  const std::string arch(name_of(shape.arch));
  const auto whole = [&](const char* key, int most) { return static_cast<int>(fields.integer(arch + key, 1, most)); };
  shape.name = fields.text("general.name", "");
  if (fields.integer("split.count", 0, 65'535, 0) > 1)
    fields.fail_at("split.count", "the model is split over several files; join them first", errc::unsupported);
  shape.layers = whole(".block_count", limits::layers_max);
  shape.hidden = whole(".embedding_length", limits::width_max);
  shape.heads = whole(".attention.head_count", limits::heads_max);
  shape.kv_heads = static_cast<int>(fields.integer(arch + ".attention.head_count_kv", 1, limits::heads_max, shape.heads));
  shape.ffn = whole(".feed_forward_length", limits::width_max);
  shape.context_tokens = whole(".context_length", limits::context_tokens_max);
  shape.norm_epsilon = static_cast<float>(fields.number(arch + ".attention.layer_norm_rms_epsilon", 1e-12, 1.0));
  if (fields.failed())
    return shape;
  const int derived = shape.hidden / shape.heads;
  const bool stated = fields.has(arch + ".attention.key_length");
  if (!stated && (shape.hidden % shape.heads != 0 || derived > limits::head_dim_max)) {
    fields.fail_at(arch + ".attention.key_length", "the file has no such key, and the width does not divide by the heads");
    return shape;
  }
  shape.head_dim = static_cast<int>(fields.integer(arch + ".attention.key_length", 1, limits::head_dim_max, derived));
  const auto same = [&](const char* key, const char* why) {
    if (fields.integer(arch + key, 1, limits::head_dim_max, shape.head_dim) != shape.head_dim && !fields.failed())
      fields.fail_at(arch + key, why, errc::unsupported);
  };
  same(".attention.value_length", "values of another length than keys are not supported");
  same(".rope.dimension_count", "RoPE over a part of the head is not supported");
  read_rope(fields, arch, shape);
  return shape;
}

} // namespace troupe
