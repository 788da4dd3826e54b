// Ids of Qwen3's tokenizer over two megabytes of mixed text equal those of PyPI's `tokenizers` (tokenizer_corpus.py wrote
// the digests, so that the check runs without the package).
#include <doctest/doctest.h>
#include <fstream>
#include <optional>

#include "model/pre_tokenizer.hpp"
#include "tests/golden/tokenizer_corpus.hpp"
#include "tests/support/tokenizer_json.hpp"

using namespace troupe;

namespace {

struct digest_line {
  std::uint64_t block = 0, bytes = 0, text = 0, count = 0, ids = 0, added_count = 0, added_ids = 0;
};

std::vector<digest_line> read_digest() {
  std::ifstream file(std::string(TROUPE_SOURCE_DIR) + "/tests/golden/tokenizer_corpus_digest.txt");
  std::vector<digest_line> lines;
  for (digest_line d; file >> std::dec >> d.block >> d.bytes >> std::hex >> d.text >> std::dec >> d.count >> std::hex >>
                      d.ids >> std::dec >> d.added_count >> std::hex >> d.added_ids;)
    lines.push_back(d);
  return lines;
}

std::optional<pre_tokenizer> pre_tokenizer_named(std::string_view name) {
  if (name == "qwen2")
    return pre_tokenizer::qwen2;
  if (name == "llama_bpe")
    return pre_tokenizer::llama_bpe;
  if (name == "gpt2")
    return pre_tokenizer::gpt2;
  return name == "smollm" ? std::optional(pre_tokenizer::smollm) : std::nullopt;
}

} // namespace

TEST_CASE("Qwen3's ids over two megabytes of mixed text equal those of Hugging Face's tokenizers") {
  const auto t = testing::qwen3_tokenizer();
  if (t == nullptr)
    return;
  const testing::tokenizer_corpus corpus;
  const auto digest = read_digest();
  REQUIRE(digest.size() == testing::tokenizer_corpus::blocks);
  for (const auto& expected : digest) {
    CAPTURE(expected.block);
    const std::string text = corpus.block(expected.block);
    REQUIRE(text.size() == expected.bytes);
    REQUIRE(testing::fnv1a(text) == expected.text);
    const auto ids = t->encode(text);
    CHECK(ids.size() == expected.count);
    CHECK(testing::fnv1a(ids) == expected.ids);
    const auto with_added = t->encode_with_added_tokens(text);
    CHECK(with_added.size() == expected.added_count);
    CHECK(testing::fnv1a(with_added) == expected.added_ids);
  }
}

TEST_CASE("every pre-tokeniser cuts two megabytes of mixed text where Hugging Face's regular expressions do") {
  const testing::tokenizer_corpus corpus;
  std::ifstream file(std::string(TROUPE_SOURCE_DIR) + "/tests/golden/tokenizer_pre_tokens_digest.txt");
  std::string name;
  std::uint64_t block = 0, count = 0, digest = 0;
  std::size_t lines = 0;
  while (file >> name >> std::dec >> block >> count >> std::hex >> digest) {
    ++lines;
    CAPTURE(name);
    CAPTURE(block);
    const auto kind = pre_tokenizer_named(name);
    REQUIRE(kind.has_value());
    const std::string text = corpus.block(block);
    std::vector<token_id> ends;
    for_each_pre_token(*kind, text.data(), text.data() + text.size(),
                       [&](const char*, const char* end) { ends.push_back(static_cast<token_id>(end - text.data())); });
    CHECK(ends.size() == count);
    CHECK(testing::fnv1a(ends) == digest);
  }
  CHECK(lines == 4 * testing::tokenizer_corpus::blocks);
}
