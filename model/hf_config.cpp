#include "model/hf_config.hpp"

#include <algorithm>

#include "config/limits.hpp"
#include "model/model_file_checks.hpp"

namespace troupe {

namespace {

void read_architecture(hf_fields& config, hyperparameters& shape) {
  const std::string type = config.text("model_type");
  for (const auto known : {architecture::qwen3, architecture::qwen2, architecture::llama})
    if (type == name_of(known)) {
      shape.arch = known;
      return;
    }
  config.fail_at("model_type", in_quotes(type) + " is not supported; qwen3, qwen2 and llama are", errc::unsupported);
}

// Switches that change the arithmetic and that we do not have.
void refuse_variants(hf_fields& config) {
  const std::string activation = config.text("hidden_act", "silu");
  if (activation != "silu")
    config.fail_at("hidden_act", in_quotes(activation) + " is not supported; silu is", errc::unsupported);
  if (config.boolean("use_sliding_window", false))
    config.fail_at("use_sliding_window", "sliding-window layers are not supported", errc::unsupported);
  if (config.boolean("mlp_bias", false))
    config.fail_at("mlp_bias", "biases in the feed-forward part are not supported", errc::unsupported);
  if (config.has("quantization_config"))
    config.fail_at("quantization_config", "quantised safetensors are not supported; use BF16, F16 or F32, or a GGUF file",
                   errc::unsupported);
  if (config.number("partial_rotary_factor", 0.0, 1.0, 1.0) != 1.0)
    config.fail_at("partial_rotary_factor", "RoPE over a part of the head is not supported", errc::unsupported);
}

void read_scaling(hf_fields& scaling, hyperparameters& shape) {
  rope_settings& rope = shape.rope;
  const std::string kind = scaling.text(scaling.has("rope_type") ? "rope_type" : "type", "default");
  if (kind == "default" || scaling.failed())
    return;
  if (kind != "linear" && kind != "yarn" && kind != "llama3")
    return scaling.fail_at("rope_type", in_quotes(kind) + " is not supported; linear, yarn and llama3 are", errc::unsupported);
  const auto number = [&](const char* key, float fallback) {
    return static_cast<float>(scaling.number(key, 1e-3, 1e6, fallback));
  };
  rope.factor = static_cast<float>(scaling.number("factor", 1.0, 1e6));
  if (kind == "linear") {
    rope.scaling = rope_scaling::linear;
    return;
  }
  rope.original_context = static_cast<int>(
      scaling.integer("original_max_position_embeddings", 1, limits::context_tokens_max, shape.context_tokens));
  if (kind == "llama3") {
    rope.scaling = rope_scaling::llama3;
    rope.low_frequency_factor = number("low_freq_factor", rope.low_frequency_factor);
    rope.high_frequency_factor = number("high_freq_factor", rope.high_frequency_factor);
    if (!scaling.failed() && !(rope.high_frequency_factor > rope.low_frequency_factor))
      scaling.fail_at("high_freq_factor", "is not above low_freq_factor");
    return;
  }
  rope.scaling = rope_scaling::yarn;
  rope.beta_fast = number("beta_fast", rope.beta_fast);
  rope.beta_slow = number("beta_slow", rope.beta_slow);
  rope.attention_factor = scaling.has("attention_factor") ? number("attention_factor", 1.0f) : 0.0f;
  if (scaling.has("mscale") || scaling.has("mscale_all_dim"))
    scaling.fail_at("mscale", "is not supported; attention_factor is", errc::unsupported);
}

// "rope_theta" and "rope_scaling", or both inside "rope_parameters" as newer files have it.
void read_rope(hf_fields& config, hyperparameters& shape) {
  double base = config.number("rope_theta", 1.0, 1e12, 10'000.0);
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    auto scaling = config.nested(key);
    if (!scaling)
      continue;
    base = scaling->number("rope_theta", 1.0, 1e12, base);
    read_scaling(*scaling, shape);
    config.adopt(*scaling);
    break;
  }
  shape.rope.base = static_cast<float>(base);
}

} // namespace

hyperparameters hf_hyperparameters(hf_fields& config) {
  hyperparameters shape;
  read_architecture(config, shape);
  refuse_variants(config);
  const auto whole = [&](const char* key, int most) { return static_cast<int>(config.integer(key, 1, most)); };
  shape.layers = whole("num_hidden_layers", limits::layers_max);
  shape.hidden = whole("hidden_size", limits::width_max);
  shape.heads = whole("num_attention_heads", limits::heads_max);
  shape.kv_heads = static_cast<int>(config.integer("num_key_value_heads", 1, limits::heads_max, shape.heads));
  shape.ffn = whole("intermediate_size", limits::width_max);
  shape.context_tokens = whole("max_position_embeddings", limits::context_tokens_max);
  shape.norm_epsilon = static_cast<float>(config.number("rms_norm_eps", 1e-12, 1.0, 1e-6));
  if (config.failed())
    return shape;
  // The libraries' own defaults where the file is silent.
  const int derived = shape.arch == architecture::qwen3 ? 128 : shape.hidden / shape.heads;
  if (!config.has("head_dim") && shape.arch != architecture::qwen3 && shape.hidden % shape.heads != 0)
    config.fail_at("head_dim", "is missing, and hidden_size does not divide by num_attention_heads");
  shape.head_dim = static_cast<int>(config.integer("head_dim", 1, limits::head_dim_max, derived));
  if (!config.failed() && (shape.head_dim < 1 || shape.head_dim > limits::head_dim_max))
    config.fail_at("head_dim", std::to_string(shape.head_dim) + " is outside 1.." + std::to_string(limits::head_dim_max));
  read_rope(config, shape);
  return shape;
}

std::vector<token_id> hf_token_ids(hf_fields& fields, std::string_view key) {
  std::vector<token_id> out;
  const auto element = fields.find(key);
  if (!element)
    return out;
  const auto add = [&](simdjson::dom::element item) {
    std::int64_t id = 0;
    if (item.get(id) || id < 0 || id >= limits::vocabulary_max)
      fields.fail_at(key, "is not a token id or a list of them");
    else
      out.push_back(static_cast<token_id>(id));
  };
  simdjson::dom::array list;
  if (element->get(list)) {
    add(*element);
    return out;
  }
  if (list.size() > 64)
    fields.fail_at(key, "has " + std::to_string(list.size()) + " ids");
  for (const auto item : list)
    if (!fields.failed())
      add(item);
  return out;
}

sampling_params hf_sampling(hf_fields& generation, bool& present) {
  sampling_params out;
  present = false;
  const auto number = [&](const char* key, float fallback) {
    present = present || generation.has(key);
    return static_cast<float>(generation.number(key, -1e6, 1e6, fallback));
  };
  out.temperature = number("temperature", out.temperature);
  out.top_p = number("top_p", out.top_p);
  out.min_p = number("min_p", out.min_p);
  out.repetition_penalty = number("repetition_penalty", out.repetition_penalty);
  present = present || generation.has("top_k") || generation.has("do_sample");
  out.top_k = static_cast<int>(std::max<std::int64_t>(0, generation.integer("top_k", -1, limits::vocabulary_max, 0)));
  if (generation.has("do_sample") && !generation.boolean("do_sample", true))
    out.temperature = 0.0f;
  return out;
}

} // namespace troupe
