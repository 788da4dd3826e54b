#include "model/model_file_inspect.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "model/chat_template.hpp"
#include "model/gguf_model.hpp"
#include "model/weight_types.hpp"

namespace troupe {

namespace {

constexpr std::size_t label_width = 16;
constexpr std::size_t metadata_bytes_max = 100;

std::string padded(std::string_view text, std::size_t width) {
  return std::string(text) + std::string(text.size() < width ? width - text.size() : 0, ' ');
}

std::string right_aligned(std::string_view text, std::size_t width) {
  return std::string(text.size() < width ? width - text.size() : 0, ' ') + std::string(text);
}

std::string line(std::string_view label, std::string_view value) {
  return padded(label, label_width) + std::string(value) + "\n";
}

// 1234567 as "1,234,567".
std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3; at -= 3)
    digits.insert(at - 3, ",");
  return digits;
}

std::string scaled(double number, double base, const std::array<const char*, 4>& units) {
  std::size_t unit = 0;
  while (number >= base && unit + 1 < units.size()) {
    number /= base;
    ++unit;
  }
  char text[48];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f%s" : "%.2f%s", number, units[unit]);
  return text;
}

std::string bytes_text(std::uint64_t bytes) {
  return scaled(static_cast<double>(bytes), 1024.0, {" B", " KiB", " MiB", " GiB"});
}

std::string short_number(float value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", static_cast<double>(value));
  return text;
}

// One line of text: control bytes become spaces, long text is cut.
std::string one_line(std::string_view text) {
  std::string out(text.substr(0, metadata_bytes_max));
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 32 || c == 127)
      c = ' ';
  return text.size() > metadata_bytes_max ? out + "..." : out;
}

std::string rope_line(const hyperparameters& shape) {
  const rope_settings& rope = shape.rope;
  std::string out = "base " + short_number(rope.base) + (rope.adjacent_pairs ? ", adjacent pairs" : ", half-split pairs");
  switch (rope.scaling) {
  case rope_scaling::none: break;
  case rope_scaling::linear: out += ", linear x" + short_number(rope.factor); break;
  case rope_scaling::yarn: out += ", YaRN x" + short_number(rope.factor); break;
  case rope_scaling::llama3: out += ", llama3 x" + short_number(rope.factor); break;
  }
  if (rope.scaling == rope_scaling::yarn || rope.scaling == rope_scaling::llama3)
    out += " from " + std::to_string(rope.original_context) + " tokens";
  return out + (rope.divisors.empty() ? "" : ", a divisor per frequency");
}

std::string summary(const model_file& file) {
  const hyperparameters& s = file.weights.shape;
  const std::uint64_t parameters = parameters_of(file);
  std::string out;
  out += line("name", one_line(s.name));
  out += line("format", file.format);
  out += line("architecture", name_of(s.arch));
  out += line("parameters",
              grouped(parameters) + " (" + scaled(static_cast<double>(parameters), 1000.0, {"", "K", "M", "B"}) + ")");
  out += line("layers", std::to_string(s.layers));
  out += line("width", std::to_string(s.hidden) + " hidden, " + std::to_string(s.ffn) + " feed-forward");
  out +=
      line("heads", std::to_string(s.heads) + " query, " + std::to_string(s.kv_heads) + " key/value, of " +
                        std::to_string(s.head_dim) + (s.qk_norm ? ", normalised" : "") + (s.qkv_bias ? ", with biases" : ""));
  out += line("vocabulary", std::to_string(s.vocabulary) + " rows, output " + (s.tied_output ? "tied" : "of its own"));
  out += line("context", std::to_string(s.context_tokens) + " tokens");
  out += line("RoPE", rope_line(s));
  return out;
}

std::string types(const model_file& file) {
  std::array<std::uint64_t, weight_type_count> bytes{}, tensors{};
  std::uint64_t total = 0;
  for (const auto& row : file.table) {
    bytes[static_cast<std::size_t>(row.type)] += row.bytes;
    ++tensors[static_cast<std::size_t>(row.type)];
    total += row.bytes;
  }
  std::string out = line("weights", bytes_text(total) + " in " + std::to_string(file.table.size()) + " tensors");
  for (std::size_t i = 0; i < bytes.size(); ++i)
    if (tensors[i] != 0)
      out += line("  " + std::string(info_of(static_cast<weight_type>(i)).name),
                  bytes_text(bytes[i]) + " in " + std::to_string(tensors[i]));
  return out;
}

std::string token_text(const tokenizer_data& tokens, token_id id) {
  if (id < 0 || static_cast<std::size_t>(id) >= tokens.tokens.size())
    return "none";
  return std::to_string(id) + " " + one_line(tokens.tokens[static_cast<std::size_t>(id)]);
}

std::string template_line(const model_file& file) {
  if (file.chat_template.empty())
    return "none in the file; name one with --chat-template";
  const auto kind = recognise_template(file.chat_template);
  return kind ? std::string(name_of(*kind))
              : "unknown to us (" + std::to_string(file.chat_template.size()) + " bytes of Jinja)";
}

std::string sampling_line(const model_file& file) {
  const sampling_params& s = file.sampling;
  if (!file.has_sampling)
    return "the file says nothing";
  if (s.temperature == 0.0f)
    return "greedy";
  return "temperature " + short_number(s.temperature) + ", top_k " + std::to_string(s.top_k) + ", top_p " +
         short_number(s.top_p) + ", min_p " + short_number(s.min_p) + ", repetition_penalty " +
         short_number(s.repetition_penalty);
}

std::string token_lines(const model_file& file) {
  const tokenizer_data& t = file.tokenizer;
  const auto count = [&](token_kind kind) { return std::to_string(std::count(t.kinds.begin(), t.kinds.end(), kind)); };
  std::string out = line("tokenizer", "byte-level BPE, " + std::string(gguf_name_of(t.pre)) + (t.nfc ? ", NFC" : "") +
                                          (t.ignore_merges ? ", whole words first" : "") + (t.add_bos ? ", adds bos" : ""));
  out += line("  tokens", count(token_kind::normal) + " ordinary, " + count(token_kind::control) + " control, " +
                              count(token_kind::user_defined) + " user-defined, " + count(token_kind::unused) + " unused; " +
                              std::to_string(t.merges.size()) + " merges");
  out += line("  bos", token_text(t, t.bos));
  std::string ends;
  for (const auto id : file.end_tokens)
    ends += (ends.empty() ? "" : ", ") + token_text(t, id);
  out += line("  ends", ends.empty() ? "none" : ends);
  out += line("chat template", template_line(file));
  out += line("sampling", sampling_line(file));
  return out;
}

std::string tensor_table(const model_file& file) {
  std::size_t name_width = 6;
  for (const auto& row : file.table)
    name_width = std::max(name_width, one_line(row.name).size());
  std::string out = padded("tensor", name_width + 2) + "type  " + padded("shape", 18) + right_aligned("bytes", 14) +
                    right_aligned("offset", 16) + "\n";
  for (const auto& row : file.table) {
    std::string shape;
    for (const auto extent : row.shape)
      shape += (shape.empty() ? "" : " x ") + std::to_string(extent);
    out += padded(one_line(row.name), name_width + 2) + padded(info_of(row.type).name, 6) + padded(shape, 18) +
           right_aligned(grouped(row.bytes), 14) + right_aligned(grouped(row.offset), 16) + "\n";
  }
  return out;
}

} // namespace

std::uint64_t parameters_of(const model_file& file) noexcept {
  std::uint64_t out = 0;
  for (const auto& row : file.table) {
    std::uint64_t weights = 1;
    for (const auto extent : row.shape)
      weights *= static_cast<std::uint64_t>(extent);
    out += weights;
  }
  return out;
}

std::string inspect_text(const model_file& file) {
  std::string out = summary(file) + types(file) + token_lines(file) + "\n" + tensor_table(file) + "\n";
  std::size_t key_width = 0;
  for (const auto& [key, value] : file.metadata)
    key_width = std::max(key_width, one_line(key).size());
  for (const auto& [key, value] : file.metadata)
    out += padded(one_line(key), key_width + 2) + one_line(value) + "\n";
  return out;
}

} // namespace troupe
