// Opening by path, the models that are at hand, and the table for people.
#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>

#include <sys/stat.h>

#include "gguf_draft.hpp"
#include "model/mapped_file.hpp"
#include "model/model_file.hpp"
#include "model/model_file_inspect.hpp"
#include "model_file_temp_folder.hpp"
#include "safetensors_draft.hpp"

using namespace troupe;
using test::temp_folder;
using test::write_file;

namespace {

bool says(const std::string& message, const std::string& part) {
  const bool found = message.find(part) != std::string::npos;
  if (!found)
    MESSAGE("\"" << message << "\" lacks \"" << part << "\"");
  return found;
}

std::filesystem::path tiny_model() {
  for (const char* place : {"/models/tiny", "/../shared/tiny-model/model"}) {
    const std::filesystem::path path = std::string(TROUPE_SOURCE_DIR) + place;
    if (std::filesystem::exists(path / "model.safetensors"))
      return path;
  }
  return {};
}

} // namespace

TEST_CASE("a path may be a GGUF file, a folder, a safetensors file or a folder with one GGUF file") {
  const temp_folder folder;
  write_file(folder / "m.gguf", test::small_gguf().bytes());
  auto opened = open_model(folder / "m.gguf");
  REQUIRE_MESSAGE(opened.has_value(), opened.fault().message);
  CHECK(opened->format == "GGUF v3");
  opened = open_model(folder.path());
  REQUIRE(opened);
  CHECK(opened->format == "GGUF v3");
  test::small_hf().write(folder.path());
  opened = open_model(folder.path());
  REQUIRE(opened);
  CHECK(opened->format == "safetensors");
  CHECK(opened->weights.shape.name == folder.path().filename().string());
  opened = open_model(folder / "model.safetensors");
  REQUIRE(opened);
  CHECK(opened->format == "safetensors");
  opened = open_model(folder.path().string() + "/");
  REQUIRE(opened);
  CHECK(opened->weights.shape.name == folder.path().filename().string());
}

TEST_CASE("a GGUF file without a name takes its file's") {
  const temp_folder folder;
  auto draft = test::small_gguf();
  draft.erase("general.name");
  write_file(folder / "my-model.gguf", draft.bytes());
  const auto opened = open_model(folder / "my-model.gguf");
  REQUIRE(opened);
  CHECK(opened->weights.shape.name == "my-model");
}

TEST_CASE("what is no model is refused with its path") {
  const temp_folder folder;
  const auto fault = [&](const std::string& name, errc code) {
    const auto opened = open_model(folder / name);
    REQUIRE_FALSE(opened);
    CHECK(opened.fault().code == code);
    CHECK(says(opened.fault().message, (folder / name).string()));
    return opened.fault().message;
  };
  CHECK(says(fault("absent", errc::not_found), "there is no such file or folder"));
  write_file(folder / "empty.gguf", "");
  CHECK(says(fault("empty.gguf", errc::model_format), "the file is empty"));
  write_file(folder / "text.gguf", "this is not a model at all");
  CHECK(says(fault("text.gguf", errc::model_format), "magic at byte 0: is not GGUF"));
  std::filesystem::create_directory(folder / "hollow");
  CHECK(says(fault("hollow", errc::not_found), "config.json"));
  CHECK(says(fault("text.gguf/x", errc::not_found), "there is no such"));
  REQUIRE(::mkfifo((folder / "pipe.gguf").c_str(), 0600) == 0);
  CHECK(says(fault("pipe.gguf", errc::model_format), "not a regular file"));
}

TEST_CASE("a model stays readable after its file is gone") {
  const temp_folder folder;
  write_file(folder / "m.gguf", test::small_gguf().bytes());
  const auto opened = open_model(folder / "m.gguf");
  REQUIRE(opened);
  std::filesystem::remove(folder / "m.gguf");
  std::vector<float> row(64);
  const auto& view = opened->weights.layers[1].down;
  dequantize_row(view.type, view.row(view.rows - 1), row.data(), view.columns);
  CHECK(row[63] >= -1.0f);
  CHECK(row[63] < 1.0f);
}

TEST_CASE("the tiny model opens with the numbers that its makers state") {
  const auto path = tiny_model();
  if (path.empty()) {
    MESSAGE("skipped: neither models/tiny nor ../shared/tiny-model is there");
    return;
  }
  const auto opened = open_model(path);
  REQUIRE_MESSAGE(opened.has_value(), opened.fault().message);
  const auto& shape = opened->weights.shape;
  CHECK(shape.arch == architecture::qwen3);
  CHECK(shape.layers == 6);
  CHECK(shape.hidden == 256);
  CHECK(shape.heads == 4);
  CHECK(shape.kv_heads == 2);
  CHECK(shape.head_dim == 64);
  CHECK(shape.ffn == 768);
  CHECK(shape.vocabulary == 3072);
  CHECK(shape.tied_output);
  CHECK(parameters_of(*opened) == 5'509'120);
  CHECK(opened->weights.token_embedding.type == weight_type::bf16);
  CHECK(opened->tokenizer.tokens.size() == 3072);
  CHECK(opened->tokenizer.tokens[3065] == "<|im_end|>");
  CHECK(opened->tokenizer.kinds[3066] == token_kind::user_defined);
  CHECK(opened->tokenizer.nfc);
  CHECK(opened->end_tokens == std::vector<token_id>{3063, 3065});
  CHECK(opened->sampling.temperature == 0.0f);
  CHECK(says(inspect_text(*opened), "5,509,120 (5.51M)"));
}

TEST_CASE("SmolLM2 opens with the numbers of its card") {
  const char* path = std::getenv("TROUPE_SMOLLM2");
  if (path == nullptr) {
    MESSAGE("skipped: TROUPE_SMOLLM2 names no file");
    return;
  }
  const auto opened = open_model(path);
  REQUIRE_MESSAGE(opened.has_value(), opened.fault().message);
  const auto& shape = opened->weights.shape;
  CHECK(shape.arch == architecture::llama);
  CHECK(shape.layers == 30);
  CHECK(shape.hidden == 576);
  CHECK(shape.heads == 9);
  CHECK(shape.kv_heads == 3);
  CHECK(shape.head_dim == 64);
  CHECK(shape.ffn == 1536);
  CHECK(shape.vocabulary == 49'152);
  CHECK(shape.rope.base == 100'000.0f);
  CHECK(shape.rope.adjacent_pairs);
  CHECK(opened->weights.layers[0].q.type == weight_type::q4_1);
  CHECK(opened->weights.token_embedding.type == weight_type::q8_0);
  CHECK(parameters_of(*opened) == 134'515'008);
  CHECK(opened->tokenizer.pre == pre_tokenizer::smollm);
  CHECK(opened->tokenizer.merges.size() == 48'900);
  CHECK(opened->tokenizer.bos == 1);
  CHECK_FALSE(opened->tokenizer.add_bos);
  CHECK(opened->end_tokens == std::vector<token_id>{0, 2});
}

TEST_CASE("the table for people shows what one asks first") {
  const temp_folder folder;
  auto draft = test::small_gguf(architecture::qwen3, weight_type::q8_0);
  draft.set_text("general.note", "line\nbreak\x1b[31m");
  write_file(folder / "m.gguf", draft.bytes());
  const auto opened = open_model(folder / "m.gguf");
  REQUIRE(opened);
  const auto text = inspect_text(*opened);
  CHECK(says(text, "name            Small\n"));
  CHECK(says(text, "architecture    qwen3\n"));
  CHECK(says(text, "heads           4 query, 2 key/value, of 32, normalised\n"));
  CHECK(says(text, "tokenizer       byte-level BPE, qwen2, NFC\n"));
  CHECK(says(text, "5 ordinary, 3 control, 1 user-defined, 1 unused; 2 merges"));
  CHECK(says(text, "chat template   unknown to us (14 bytes of Jinja)"));
  CHECK(says(text, "blk.1.ffn_down.weight"));
  CHECK(says(text, "64 x 64"));
  CHECK(says(text, "line break [31m"));
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.back() == '\n');
}

TEST_CASE("bytes of a mapped file that were dropped are read again, and no byte beside them is lost") {
  const temp_folder folder;
  std::string text(64 << 10, '\0');
  for (std::size_t i = 0; i < text.size(); ++i)
    text[i] = static_cast<char>(i * 31 >> 3);
  write_file(folder.path() / "bytes", text);
  const auto file = mapped_file::open(folder.path() / "bytes");
  REQUIRE(file);
  const auto bytes = (*file)->bytes();
  const auto whole = [&] { return std::memcmp(bytes.data(), text.data(), text.size()) == 0; };
  REQUIRE(whole());
  for (const auto& [begin, size] : {std::pair<std::size_t, std::size_t>{0, 64 << 10}, {1, 5}, {4095, 4098}, {5000, 20'000}, {8192, 0}}) {
    CAPTURE(begin);
    drop_resident(bytes.subspan(begin, size));
    CHECK(whole());
  }
}
