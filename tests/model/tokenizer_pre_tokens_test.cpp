// Where the four pre-tokenisers cut, on texts small enough to see why.
#include <doctest/doctest.h>

#include "model/pre_tokenizer.hpp"

using namespace troupe;

namespace {

using pieces = std::vector<std::string>;

pieces cut(pre_tokenizer kind, std::string_view text) {
  pieces out;
  for_each_pre_token(kind, text.data(), text.data() + text.size(),
                     [&](const char* b, const char* e) { out.emplace_back(b, e); });
  return out;
}

} // namespace

TEST_CASE("qwen2 cuts words with one character before them, single digits and runs of signs with their line ends") {
  const auto kind = pre_tokenizer::qwen2;
  CHECK(cut(kind, "Hello world") == pieces{"Hello", " world"});
  CHECK(cut(kind, "a123b") == pieces{"a", "1", "2", "3", "b"});
  CHECK(cut(kind, "(word") == pieces{"(word"});
  CHECK(cut(kind, "((word") == pieces{"((", "word"});
  CHECK(cut(kind, " ((\r\n\nx") == pieces{" ((\r\n\n", "x"});
  CHECK(cut(kind, "x != y") == pieces{"x", " !=", " y"});
  CHECK(cut(kind, "\tx\nx") == pieces{"\tx", "\n", "x"});
}

TEST_CASE("qwen2 keeps the last space for the word behind it and ends white space at its last line end") {
  const auto kind = pre_tokenizer::qwen2;
  CHECK(cut(kind, "a   b") == pieces{"a", "  ", " b"});
  CHECK(cut(kind, "a  \n\n  b") == pieces{"a", "  \n\n", " ", " b"});
  CHECK(cut(kind, "a  ") == pieces{"a", "  "});
  CHECK(cut(kind, "a\u3000\u3000b") == pieces{"a", "\u3000", "\u3000b"});
  CHECK(cut(kind, "a  1") == pieces{"a", " ", " ", "1"});
  CHECK(cut(kind, " ") == pieces{" "});
  CHECK(cut(kind, "").empty());
}

TEST_CASE("qwen2 and llama_bpe cut contractions in either case, gpt2 only small ones") {
  CHECK(cut(pre_tokenizer::qwen2, "I'LLama") == pieces{"I", "'LL", "ama"});
  CHECK(cut(pre_tokenizer::llama_bpe, "he'Re's") == pieces{"he", "'Re", "'s"});
  CHECK(cut(pre_tokenizer::qwen2, "'\u017fab") == pieces{"'\u017f", "ab"});
  CHECK(cut(pre_tokenizer::qwen2, "'xab'") == pieces{"'xab", "'"});
  CHECK(cut(pre_tokenizer::gpt2, "he'll I'LL") == pieces{"he", "'ll", " I", "'", "LL"});
  CHECK(cut(pre_tokenizer::gpt2, "'") == pieces{"'"});
}

TEST_CASE("llama_bpe takes up to three digits, gpt2 all of them, smollm one by one") {
  CHECK(cut(pre_tokenizer::llama_bpe, "12345") == pieces{"123", "45"});
  CHECK(cut(pre_tokenizer::gpt2, "a 12345") == pieces{"a", " 12345"});
  CHECK(cut(pre_tokenizer::smollm, "a 12345") == pieces{"a", " ", "1", "2", "3", "4", "5"});
  CHECK(cut(pre_tokenizer::smollm, "a   1") == pieces{"a", "   ", "1"}); // text ends before a digit there
  CHECK(cut(pre_tokenizer::smollm, "a   b") == pieces{"a", "  ", " b"});
}

TEST_CASE("ill-formed bytes are signs") {
  CHECK(cut(pre_tokenizer::qwen2, "a\xFF\x80!b") == pieces{"a", "\xFF\x80!", "b"});
  CHECK(cut(pre_tokenizer::qwen2, "\xFF"
                                  "b") == pieces{"\xFF"
                                                 "b"});
  CHECK(cut(pre_tokenizer::gpt2, " \xE4\xBD") == pieces{" \xE4\xBD"});
}
