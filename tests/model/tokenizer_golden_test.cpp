// Ids of Qwen3's tokenizer that two independent implementations agree on.
#include <doctest/doctest.h>

#include "tests/support/tokenizer_json.hpp"

using namespace troupe;

namespace {

using ids = std::vector<token_id>;

struct vector_case {
  std::string_view text;
  ids expected;
};

void check_all(const tokenizer& t, const std::vector<vector_case>& cases) {
  for (const auto& c : cases) {
    INFO("text: ", std::string(c.text));
    CHECK(t.encode_with_added_tokens(c.text) == c.expected);
  }
}

} // namespace

TEST_CASE("Qwen3's tokenizer gives the ids that two other implementations give") {
  const auto t = testing::qwen3_tokenizer();
  if (t == nullptr)
    return;
  check_all(*t, {{"Hello, world!", {9707, 11, 1879, 0}},
                 {"你好，世界！", {108386, 3837, 99489, 6313}},
                 {"1234567", {16, 17, 18, 19, 20, 21, 22}},
                 {"  leading", {220, 6388}},
                 {"a\n\n\nb", {64, 1406, 65}},
                 {"a \n b", {64, 715, 293}},
                 {"It's I'LL don’t", {2132, 594, 358, 6, 4086, 1513, 1405}},
                 {"<|im_start|>user\nhi<|im_end|>\n", {151644, 872, 198, 6023, 151645, 198}},
                 {"<think>\n\n</think>\n\n", {151667, 271, 151668, 271}},
                 {"e\u0301", {963}},
                 {"é", {963}},
                 {"Å", {144044}},
                 {"\u212B", {144044}},
                 {"  ", {256}},
                 {"\t\tx", {197, 10225}},
                 {"👍🏽", {144349, 145375}},
                 {"한국어", {23573, 124785, 31079}},
                 {"\uFB01", {144300}},
                 {"a\u00A0b", {64, 4102, 65}},
                 {"\r\n", {319}},
                 {"价格是￥1,299.00元", {97480, 20412, 72198, 16, 11, 17, 24, 24, 13, 15, 15, 23305}},
                 {"def f(x):\n    return x+1\n", {750, 282, 2075, 982, 262, 470, 856, 10, 16, 198}},
                 {"", {}}});
}

TEST_CASE("Qwen3's tokenizer folds case in contractions, splits digits and backs off before words") {
  const auto t = testing::qwen3_tokenizer();
  if (t == nullptr)
    return;
  check_all(*t, {{"I'LLama", {40, 6, 4086, 3029}},
                 {"I'llama", {40, 3278, 3029}},
                 {"x   y", {87, 256, 379}},
                 {"a  \n\n  b", {64, 18611, 220, 293}},
                 {"٣٤", {149, 96, 149, 97}},
                 {"²", {29456}},
                 {"İ'S", {47780, 13272}},
                 {"don'ſ", {15007, 6, 144815}}});
}

TEST_CASE("text that spells control tokens is encoded as text") {
  const auto t = testing::qwen3_tokenizer();
  if (t == nullptr)
    return;
  CHECK(t->encode("<|im_start|>") == ids{27, 91, 318, 4906, 91, 29});
  CHECK(t->encode("<|im_end|>") == ids{27, 91, 318, 6213, 91, 29});
  CHECK(t->encode("<think>") == ids{13708, 766, 29});
  CHECK(t->encode("</think>") == ids{522, 26865, 29});
}

TEST_CASE("Qwen3's tokenizer knows its size, its ends and its added tokens' kinds") {
  const auto t = testing::qwen3_tokenizer();
  if (t == nullptr)
    return;
  CHECK(t->size() == 151'669);
  CHECK(t->added_token("<|im_end|>") == 151'645);
  CHECK(t->added_token("Hello") == -1);
  CHECK(t->kind_of(151'645) == token_kind::control);
  CHECK(t->kind_of(151'667) == token_kind::user_defined);
  CHECK(t->kind_of(9707) == token_kind::normal);
  CHECK(t->kind_of(151'669) == token_kind::unused);
  CHECK(t->kind_of(-1) == token_kind::unused);
  CHECK(t->bytes_of(151'669).empty());
  CHECK(t->decode({151'644, 872, 198, 151'667, 6023, 151'645}) == "user\n<think>hi");
  CHECK(t->decode({151'644, 872, 198, 6023, 151'645}, true) == "<|im_start|>user\nhi<|im_end|>");
}
