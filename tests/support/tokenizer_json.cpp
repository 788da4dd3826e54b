#include "tests/support/tokenizer_json.hpp"

#include <cstdio>
#include <map>
#include <stdexcept>

#include "config/limits.hpp"
#include "model/hf_tokenizer.hpp"

namespace troupe::testing {
namespace {

std::shared_ptr<const tokenizer> build(const std::filesystem::path& file) {
  auto document = json_document::read(file);
  if (!document)
    throw std::runtime_error(document.fault().message);
  auto data = hf_tokenizer(*document, limits::vocabulary_max);
  if (!data)
    throw std::runtime_error(data.fault().message);
  auto built = tokenizer::build(std::move(data).value());
  if (!built)
    throw std::runtime_error(built.fault().message);
  return built.value();
}

} // namespace

std::shared_ptr<const tokenizer> tokenizer_of(const std::filesystem::path& file) {
  static std::map<std::filesystem::path, std::shared_ptr<const tokenizer>> known;
  const auto [it, fresh] = known.try_emplace(file);
  if (fresh && std::filesystem::exists(file))
    it->second = build(file);
  else if (fresh)
    std::printf("skipped: %s is absent\n", file.string().c_str());
  return it->second;
}

std::filesystem::path shared_folder() {
  return std::filesystem::path(TROUPE_SOURCE_DIR).parent_path() / "shared";
}

std::shared_ptr<const tokenizer> qwen3_tokenizer() {
  return tokenizer_of(shared_folder() / "data" / "qwen3-tokenizer" / "tokenizer.json");
}

std::shared_ptr<const tokenizer> tiny_tokenizer() {
  return tokenizer_of(shared_folder() / "tiny-model" / "model" / "tokenizer.json");
}

} // namespace troupe::testing
