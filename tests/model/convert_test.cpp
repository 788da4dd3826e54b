// Conversion to GGUF: nothing of a model is lost, llama's rows are permuted, and a failure leaves no half file.
#include <doctest/doctest.h>

#include <cmath>

#include "gguf_draft.hpp"
#include "model/convert.hpp"
#include "model/model_file.hpp"
#include "model/rope.hpp"
#include "model_file_temp_folder.hpp"
#include "safetensors_draft.hpp"

using namespace troupe;
using test::temp_folder;
using test::write_file;

namespace {

std::vector<float> row_of(const tensor_view& view, std::int64_t row) {
  std::vector<float> out(static_cast<std::size_t>(view.columns));
  dequantize_row(view.type, view.row(row), out.data(), view.columns);
  return out;
}

std::vector<float> all_of(const tensor_view& view) {
  std::vector<float> out;
  for (std::int64_t r = 0; r < view.rows; ++r) {
    const auto row = row_of(view, r);
    out.insert(out.end(), row.begin(), row.end());
  }
  return out;
}

model_file open(const std::filesystem::path& path) {
  auto opened = open_model(path);
  REQUIRE_MESSAGE(opened.has_value(), opened.fault().message);
  return std::move(*opened);
}

model_file converted(const std::filesystem::path& from, const std::filesystem::path& to, std::optional<weight_type> type = {}) {
  const auto done = convert_to_gguf(from, to, type);
  REQUIRE_MESSAGE(done.has_value(), done.fault().message);
  return open(to);
}

void check_same_tokenizer(const model_file& a, const model_file& b) {
  CHECK(a.tokenizer.pre == b.tokenizer.pre);
  CHECK(a.tokenizer.nfc == b.tokenizer.nfc);
  CHECK(a.tokenizer.ignore_merges == b.tokenizer.ignore_merges);
  CHECK(a.tokenizer.add_bos == b.tokenizer.add_bos);
  CHECK(a.tokenizer.merges == b.tokenizer.merges);
  CHECK(a.tokenizer.bos == b.tokenizer.bos);
  CHECK(a.tokenizer.eos == b.tokenizer.eos);
  CHECK(a.tokenizer.padding == b.tokenizer.padding);
  REQUIRE(b.tokenizer.tokens.size() >= a.tokenizer.tokens.size());
  for (std::size_t i = 0; i < b.tokenizer.tokens.size(); ++i) {
    const bool known = i < a.tokenizer.tokens.size();
    CHECK(b.tokenizer.kinds[i] == (known ? a.tokenizer.kinds[i] : token_kind::unused));
    if (known && !a.tokenizer.tokens[i].empty())
      CHECK(b.tokenizer.tokens[i] == a.tokenizer.tokens[i]);
  }
  CHECK(a.chat_template == b.chat_template);
  CHECK(a.end_tokens == b.end_tokens);
}

} // namespace

TEST_CASE("a folder of each architecture keeps its weights, numbers, tokenizer and sampling") {
  for (const auto arch : {architecture::qwen3, architecture::qwen2, architecture::llama}) {
    CAPTURE(name_of(arch));
    const temp_folder folder;
    test::small_hf(arch, weight_type::bf16).write(folder.path());
    const auto before = open(folder.path());
    const auto after = converted(folder.path(), folder / "out.gguf");
    check_same_tokenizer(before, after);
    CHECK(after.sampling.temperature == before.sampling.temperature);
    CHECK(after.sampling.top_p == before.sampling.top_p);
    CHECK(after.sampling.top_k == before.sampling.top_k);
    CHECK(after.has_sampling);
    const auto &a = before.weights.shape, &b = after.weights.shape;
    CHECK(a.name == b.name);
    CHECK(a.head_dim == b.head_dim);
    CHECK(a.ffn == b.ffn);
    CHECK(a.context_tokens == b.context_tokens);
    CHECK(a.norm_epsilon == b.norm_epsilon);
    CHECK(a.rope.base == b.rope.base);
    CHECK(a.tied_output == b.tied_output);
    CHECK(a.vocabulary == b.vocabulary);
    CHECK(after.weights.token_embedding.type == weight_type::bf16);
    CHECK(after.weights.output_norm.type == weight_type::f32);
    CHECK(all_of(before.weights.token_embedding) == all_of(after.weights.token_embedding));
    CHECK(all_of(before.weights.output_norm) == all_of(after.weights.output_norm));
    for (std::size_t i = 0; i < 2; ++i) {
      const auto &x = before.weights.layers[i], &y = after.weights.layers[i];
      for (const auto member : {&layer_weights::attention_norm, &layer_weights::v, &layer_weights::v_bias,
                                &layer_weights::q_norm, &layer_weights::k_norm, &layer_weights::o, &layer_weights::ffn_norm,
                                &layer_weights::gate, &layer_weights::up, &layer_weights::down})
        CHECK(all_of(x.*member) == all_of(y.*member));
      const bool same_q = all_of(x.q) == all_of(y.q);
      CHECK(same_q == (arch != architecture::llama));
    }
  }
}

TEST_CASE("llama's q and k rows are permuted from half-split to adjacent pairs within each head") {
  const temp_folder folder;
  auto draft = test::small_hf(architecture::llama);
  draft.write(folder.path());
  const auto before = open(folder.path());
  const auto after = converted(folder.path(), folder / "out.gguf");
  CHECK(after.weights.shape.rope.adjacent_pairs);
  constexpr int half = 8; // head_dim 16
  for (const auto& [member, heads] : {std::pair{&layer_weights::q, 4}, {&layer_weights::k, 2}})
    for (int h = 0; h < heads; ++h)
      for (int i = 0; i < half; ++i) {
        const auto& x = before.weights.layers[1].*member;
        const auto& y = after.weights.layers[1].*member;
        CHECK(row_of(y, h * 16 + 2 * i) == row_of(x, h * 16 + i));
        CHECK(row_of(y, h * 16 + 2 * i + 1) == row_of(x, h * 16 + i + half));
      }
  // Once permuted, a GGUF file is copied as it is.
  const auto again = converted(folder / "out.gguf", folder / "again.gguf");
  CHECK(all_of(again.weights.layers[0].q) == all_of(after.weights.layers[0].q));
  CHECK(test::read_file(folder / "again.gguf") == test::read_file(folder / "out.gguf"));
}

TEST_CASE("matrices take the type asked for, vectors stay F32") {
  for (int i = 0; i < 11; ++i) {
    const auto type = static_cast<weight_type>(i);
    CAPTURE(info_of(type).name);
    const temp_folder folder;
    auto draft = test::small_gguf(architecture::qwen3, weight_type::f32);
    if (info_of(type).block_weights == 256)
      draft = test::small_gguf(architecture::qwen3, weight_type::q6_k); // rows of 256
    write_file(folder / "in.gguf", draft.bytes());
    const auto before = open(folder / "in.gguf");
    const auto after = converted(folder / "in.gguf", folder / "out.gguf", type);
    CHECK(after.weights.layers[0].down.type == type);
    CHECK(after.weights.layers[0].ffn_norm.type == weight_type::f32);
    const auto x = all_of(before.weights.layers[1].up), y = all_of(after.weights.layers[1].up);
    double difference = 0, norm = 0;
    for (std::size_t j = 0; j < x.size(); ++j) {
      difference += std::pow(static_cast<double>(x[j] - y[j]), 2);
      norm += std::pow(static_cast<double>(x[j]), 2);
    }
    CHECK(std::sqrt(difference / norm) < 0.1);
    check_same_tokenizer(before, after);
  }
}

TEST_CASE("embedding and rows that do not divide take a finer type that fits") {
  const temp_folder folder;
  write_file(folder / "wide.gguf", test::small_gguf(architecture::qwen3, weight_type::q6_k).bytes());
  CHECK(converted(folder / "wide.gguf", folder / "a.gguf", weight_type::q4_0).weights.token_embedding.type ==
        weight_type::q6_k);
  CHECK(converted(folder / "wide.gguf", folder / "b.gguf", weight_type::q8_0).weights.token_embedding.type ==
        weight_type::q8_0);
  write_file(folder / "narrow.gguf", test::small_gguf().bytes()); // rows of 64 and 128
  const auto narrow = converted(folder / "narrow.gguf", folder / "c.gguf", weight_type::q4_k);
  CHECK(narrow.weights.token_embedding.type == weight_type::q8_0);
  CHECK(narrow.weights.layers[0].up.type == weight_type::q5_0);
  CHECK(converted(folder / "narrow.gguf", folder / "d.gguf", weight_type::q5_k).weights.layers[0].up.type == weight_type::q5_1);
  CHECK(converted(folder / "narrow.gguf", folder / "e.gguf", weight_type::q6_k).weights.layers[0].up.type == weight_type::q8_0);
}

TEST_CASE("RoPE scalings survive, Llama 3.1's as divisors") {
  const auto frequencies_before_and_after = [](const std::string& json) {
    const temp_folder folder;
    auto draft = test::small_hf(architecture::llama);
    draft.edit("config.json", R"("rope_scaling": null)", R"("rope_scaling": )" + json);
    draft.write(folder.path());
    const auto before = open(folder.path());
    const auto after = converted(folder.path(), folder / "out.gguf");
    const auto x = make_rope_table(before.weights.shape.rope, 16), y = make_rope_table(after.weights.shape.rope, 16);
    REQUIRE(x.frequencies.size() == y.frequencies.size());
    for (std::size_t i = 0; i < x.frequencies.size(); ++i)
      CHECK(y.frequencies[i] == doctest::Approx(x.frequencies[i]).epsilon(1e-5));
    CHECK(y.magnitude == doctest::Approx(x.magnitude).epsilon(1e-5));
  };
  frequencies_before_and_after(R"({"type": "linear", "factor": 2.0})");
  frequencies_before_and_after(R"({"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128})");
  frequencies_before_and_after(R"({"type": "yarn", "factor": 4.0, "attention_factor": 1.25})");
  frequencies_before_and_after(R"({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                   "original_max_position_embeddings": 256})");
}

TEST_CASE("progress grows to the whole, and nothing but the new file is left behind") {
  const temp_folder folder;
  test::small_hf().write(folder.path());
  std::filesystem::create_directory(folder / "to");
  std::uint64_t last = 0, total = 0;
  const auto done = convert_to_gguf(folder.path(), folder / "to" / "out.gguf", weight_type::q8_0, [&](auto now, auto all) {
    CHECK(now > last);
    CHECK(now <= all);
    last = now;
    total = all;
  });
  REQUIRE(done);
  CHECK(total - last < 32); // the last padding
  CHECK(std::distance(std::filesystem::directory_iterator(folder / "to"), {}) == 1);
}

TEST_CASE("a conversion that fails leaves what was there") {
  const temp_folder folder;
  test::small_hf().write(folder.path());
  write_file(folder / "out.gguf", "before");
  auto failed = convert_to_gguf(folder / "absent", folder / "out.gguf", {});
  REQUIRE_FALSE(failed);
  CHECK(failed.fault().code == errc::not_found);
  CHECK(test::read_file(folder / "out.gguf") == "before");
  failed = convert_to_gguf(folder.path(), folder / "no" / "such" / "folder.gguf", {});
  REQUIRE_FALSE(failed);
  CHECK(failed.fault().code == errc::io_failed);
  std::filesystem::create_directory(folder / "is-a-folder.gguf");
  write_file(folder / "is-a-folder.gguf" / "x", "x");
  failed = convert_to_gguf(folder.path(), folder / "is-a-folder.gguf", {});
  REQUIRE_FALSE(failed);
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    CHECK(entry.path().string().find(".part") == std::string::npos);
}

TEST_CASE("neither a device, nor a link, nor the model that is read is written over") {
  const temp_folder folder;
  const auto from = std::filesystem::path(TROUPE_SOURCE_DIR) / "models/tiny";
  const auto copy = folder.path() / "copy";
  std::filesystem::copy(from, copy);
  const auto size = std::filesystem::file_size(copy / "model.safetensors");
  CHECK_FALSE(convert_to_gguf(copy, copy / "model.safetensors", {}));
  CHECK(std::filesystem::file_size(copy / "model.safetensors") == size);
  const auto gguf = folder.path() / "tiny.gguf";
  REQUIRE(convert_to_gguf(copy, gguf, {}));
  CHECK_FALSE(convert_to_gguf(gguf, gguf, {}));
  const auto link = folder.path() / "link.gguf";
  std::filesystem::create_symlink(gguf, link);
  CHECK_FALSE(convert_to_gguf(copy, link, {}));
  CHECK(std::filesystem::is_symlink(link));
  std::filesystem::create_directory(folder.path() / "folder");
  const auto refused = convert_to_gguf(copy, folder.path() / "folder", {});
  REQUIRE_FALSE(refused);
  CHECK(refused.fault().message.find("is no regular file") != std::string::npos);
}

TEST_CASE("what GGUF cannot say for an architecture is refused, not lost") {
  const temp_folder folder;
  auto draft = test::small_hf(architecture::qwen2);
  draft.edit("config.json", R"("rope_scaling": null)", R"("rope_scaling": {"rope_type": "llama3", "factor": 8.0,
             "original_max_position_embeddings": 256})");
  draft.write(folder.path());
  const auto failed = convert_to_gguf(folder.path(), folder / "out.gguf", {});
  REQUIRE_FALSE(failed);
  CHECK(failed.fault().code == errc::unsupported);
  CHECK_FALSE(std::filesystem::exists(folder / "out.gguf"));
}

TEST_CASE("the tiny model converts whole") {
  std::filesystem::path tiny = std::string(TROUPE_SOURCE_DIR) + "/models/tiny";
  if (!std::filesystem::exists(tiny / "model.safetensors"))
    tiny = std::string(TROUPE_SOURCE_DIR) + "/../shared/tiny-model/model";
  if (!std::filesystem::exists(tiny / "model.safetensors")) {
    MESSAGE("skipped: neither models/tiny nor ../shared/tiny-model is there");
    return;
  }
  const temp_folder folder;
  const auto before = open(tiny);
  const auto after = converted(tiny, folder / "tiny.gguf");
  check_same_tokenizer(before, after);
  CHECK(all_of(before.weights.layers[5].q) == all_of(after.weights.layers[5].q));
  CHECK(after.sampling.temperature == 0.0f);
  converted(tiny, folder / "tiny-q4_k.gguf", weight_type::q4_k);
}
