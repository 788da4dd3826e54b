// Merging, added tokens, refusals and promises that hold for any bytes.
#include <algorithm>
#include <doctest/doctest.h>
#include <thread>

#include "base/random.hpp"
#include "model/tokenizer_merges.hpp"
#include "tests/support/small_tokenizer.hpp"
#include "tests/support/tokenizer_json.hpp"

using namespace troupe;
using testing::add_token;
using testing::byte_data;

namespace {

using ids = std::vector<token_id>;

std::shared_ptr<const tokenizer> built(tokenizer_data data) {
  auto t = tokenizer::build(std::move(data));
  REQUIRE(t.has_value());
  return t.value();
}

std::string refusal(tokenizer_data data) {
  const auto t = tokenizer::build(std::move(data));
  if (t)
    return "";
  CHECK(t.fault().code == errc::model_format);
  return t.fault().message;
}

bool mentions(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// Bytes of all kinds: characters of several lengths, stray continuation bytes, cut characters, control token names.
std::string random_text(std::uint64_t seed, std::size_t pieces) {
  static const std::vector<std::string> stock{
      "a",        "the",        " ",        "\n",           "你",   "é",           "e\u0301", "👍🏽",           "<think>",
      "</think>", "<|im_end|>", "\x80",     "\xE4\xBD",     "\xFF", "123",         "'s",      std::string(1, '\0'), "  ",
      "\r\n",     "Ω",          "\xF0\x9F", "\xED\xA0\x80", "가",   "\u1100\u1161"};
  std::string out;
  for (std::size_t i = 0; i < pieces; ++i) {
    const auto r = random_at(seed, i);
    if (r % 4 == 0)
      out += static_cast<char>(r >> 8);
    else
      out += stock[(r >> 8) % stock.size()];
  }
  return out;
}

// The rule of lowest rank that fits anywhere, at its leftmost place, again and again. Of equal pairs the last rule holds.
ids merged_by_definition(const std::vector<merge_table::rule>& rules, ids text) {
  for (;;) {
    std::size_t best = rules.size(), place = 0;
    for (std::size_t i = 0; i + 1 < text.size(); ++i)
      for (std::size_t r = rules.size(); r-- > 0;)
        if (rules[r].left == text[i] && rules[r].right == text[i + 1]) {
          if (r < best) {
            best = r;
            place = i;
          }
          break;
        }
    if (best == rules.size())
      return text;
    text[place] = rules[best].result;
    text.erase(text.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
}

} // namespace

TEST_CASE("the lowest rank merges first, the leftmost of equals first") {
  const auto t = built(byte_data({{"b", "c"}, {"a", "b"}, {"a", "a"}}));
  CHECK(t->encode("abc") == ids{'a', 256});
  CHECK(t->encode("abd") == ids{257, 'd'});
  CHECK(t->encode("aaa") == ids{258, 'a'});
  CHECK(t->encode("aab") == ids{'a', 257});
  CHECK(t->encode("").empty());
}

TEST_CASE("a word of the vocabulary that merging does not reach is not used, unless merges are to be ignored") {
  auto data = byte_data({{"a", "b"}});
  add_token(data, "abc", token_kind::normal);
  CHECK(built(data)->encode("abc") == ids{256, 'c'});
  const auto t = built(data);
  CHECK(t->encode("abc abc") == t->encode("abc abc"));
  data.ignore_merges = true;
  CHECK(built(data)->encode("abc") == ids{257});
}

TEST_CASE("a megabyte of one letter merges like a short run of it, in a moment") {
  const auto t = built(byte_data({{"a", "a"}, {"aa", "aa"}, {"aaaa", "aaaa"}}));
  CHECK(t->encode(std::string(1 << 20, 'a')) == ids(1 << 17, 258));
  auto odd = ids(12, 258);
  odd.insert(odd.end(), {257, 256, 'a'});
  CHECK(t->encode(std::string(103, 'a')) == odd); // the heap's range
  odd.erase(odd.begin(), odd.begin() + 3);
  CHECK(t->encode(std::string(79, 'a')) == odd); // the scan's range
}

TEST_CASE("scan and heap merge as the definition says") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    std::uint64_t draw = 0;
    const auto below = [&](std::uint64_t n) { return static_cast<token_id>(random_at(seed, draw++) % n); };
    std::vector<merge_table::rule> rules;
    for (token_id result = 4; result < 40; ++result)
      rules.push_back({below(static_cast<std::uint64_t>(result)), below(static_cast<std::uint64_t>(result)), result});
    const merge_table table(rules);
    ids text(static_cast<std::size_t>(1 + below(300)));
    for (auto& id : text)
      id = below(4);
    ids merged = text;
    merge_table::scratch work;
    merged.resize(table.apply(merged.data(), merged.size(), work));
    CHECK(merged == merged_by_definition(rules, text));
  }
}

TEST_CASE("added tokens are matched longest first, leftmost first, and only when asked for") {
  auto data = byte_data();
  add_token(data, "<a>", token_kind::control);
  add_token(data, "<a><b>", token_kind::user_defined);
  add_token(data, "<b>", token_kind::user_defined);
  const auto t = built(data);
  CHECK(t->encode_with_added_tokens("<a>") == ids{256});
  CHECK(t->encode_with_added_tokens("<a><b>") == ids{257});
  CHECK(t->encode_with_added_tokens("x<a><a><b><b>") == ids{'x', 256, 257, 258});
  CHECK(t->encode_with_added_tokens("<a") == ids{'<', 'a'});
  CHECK(t->encode("<a>") == ids{'<', 'a', '>'});
  CHECK(t->decode({256, 257, 'x'}) == "<a><b>x");
  CHECK(t->decode({256, 'x'}, true) == "<a>x");
  CHECK(t->find_added("xy<b>").begin == 2);
  CHECK(t->find_added("xy").length == 0);
}

TEST_CASE("normalisation stops at added tokens") {
  auto data = byte_data();
  data.nfc = true;
  add_token(data, "<e>", token_kind::control);
  const auto t = built(data);
  CHECK(t->encode("e\u0301") == ids{0xC3, 0xA9});
  CHECK(t->encode_with_added_tokens("<e>\u0301") == ids{256, 0xCC, 0x81});
}

TEST_CASE("data that contradicts itself is refused with a line that says where") {
  CHECK(refusal(byte_data({{"a", "b"}})).empty());
  auto data = byte_data();
  data.kinds.pop_back();
  CHECK(mentions(refusal(data), "256 tokens but 255 token types"));
  CHECK(mentions(refusal(tokenizer_data{}), "0 tokens"));
  data = byte_data();
  data.tokens['x'] = "xx";
  CHECK(mentions(refusal(data), "no token for byte 120"));
  data = byte_data();
  data.kinds['x'] = token_kind::control;
  CHECK(mentions(refusal(data), "no token for byte 120"));
  data = byte_data();
  add_token(data, "x", token_kind::normal);
  CHECK(mentions(refusal(data), "token 256 'x' stands there twice"));
  data = byte_data();
  add_token(data, "<s>", token_kind::control);
  add_token(data, "<s>", token_kind::user_defined);
  CHECK(mentions(refusal(data), "added token 257 '<s>'"));
  data = byte_data();
  add_token(data, "", token_kind::control);
  CHECK(mentions(refusal(data), "added token 256 ''"));
  data = byte_data({{"a", "b"}});
  data.merges.emplace_back("ab", "zz");
  CHECK(mentions(refusal(data), "merge 1: its right part 'zz'"));
  data.merges.back() = {"zz", "ab"};
  CHECK(mentions(refusal(data), "merge 1: its left part 'zz'"));
  data.merges.back() = {"a", "c"};
  CHECK(mentions(refusal(data), "merge 1: its result 'ac'"));
  for (auto member : {&tokenizer_data::bos, &tokenizer_data::eos, &tokenizer_data::padding}) {
    data = byte_data();
    data.*member = 256;
    CHECK(mentions(refusal(data), "id 256 is not in the vocabulary of 256"));
    data.*member = -2;
    CHECK(mentions(refusal(data), "id -2"));
  }
  data = byte_data();
  data.add_bos = true;
  CHECK(mentions(refusal(data), "begin-of-text"));
}

TEST_CASE("a vocabulary may lack bytes that text never has; they are dropped") {
  auto data = byte_data();
  data.kinds[0x13] = data.kinds[0xFF] = token_kind::unused;
  const auto t = built(data);
  CHECK(t->encode("a\x13\xFF"
                  "b") == ids{'a', 'b'});
  CHECK(t->size() == 255);
}

TEST_CASE("what is dropped does not keep its neighbours from merging") {
  auto data = byte_data({{"!", "?"}});
  data.kinds[0x13] = token_kind::unused;
  const auto t = built(data);
  CHECK(t->encode("\u00e9!\x13?") == t->encode("\u00e9!?"));
}

TEST_CASE("long words of many-byte characters merge as the definition says, cut or not") {
  // Merges within characters, of whole ones, and of parts of two neighbours.
  const auto data = byte_data({{"\xE4\xBD", "\xA0"},
                               {"\xE4", "\xBD"},
                               {"\xA0", "\xE5"},
                               {"\xE5\xA5", "\xBD"},
                               {"\xE5", "\xA5"},
                               {"\xE4\xBD\xA0", "\xE5\xA5\xBD"},
                               {"\xBD", "\xE4"},
                               {"\xE5\xA5\xBD", "\xE5\xA5\xBD"},
                               {"a", "\xE4\xBD"}});
  const auto t = built(data);
  std::vector<merge_table::rule> rules;
  for (const auto& [left, right] : data.merges) {
    const auto id_of = [&](const std::string& spelled) {
      return static_cast<token_id>(std::find(data.tokens.begin(), data.tokens.end(), spelled) - data.tokens.begin());
    };
    rules.push_back({id_of(left), id_of(right), id_of(left + right)});
  }
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    const std::string letters[] = {"你", "好", "a", "世", "é", "字"};
    std::string word;
    for (std::uint64_t i = 0; i < 1 + seed % 40; ++i)
      word += letters[random_at(seed, i) % 6];
    ids bytes;
    for (const char c : word)
      bytes.push_back(static_cast<unsigned char>(c));
    CHECK(t->encode(word) == merged_by_definition(rules, bytes));
  }
}

TEST_CASE("encoding and decoding any bytes gives the bytes back, and encode never gives an added token") {
  for (const auto& t : {testing::small_tokenizer(), testing::tiny_tokenizer(), testing::qwen3_tokenizer()}) {
    if (t == nullptr)
      continue;
    const bool normalises = t->encode("e\u0301") == t->encode("\u00e9");
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
      CAPTURE(seed);
      const std::string text = random_text(seed, 1 + seed % 60);
      const auto encoded = t->encode(text);
      bool added = false;
      for (const token_id id : encoded)
        added |= t->kind_of(id) != token_kind::normal;
      CHECK_FALSE(added);
      const std::string back = t->decode(encoded);
      if (normalises)
        CHECK(t->encode(back) == encoded);
      else
        CHECK(back == text);
    }
  }
}

TEST_CASE("threads that encode at once learn the same words") {
  const auto t = testing::small_tokenizer();
  std::vector<ids> results(4);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < results.size(); ++i)
      threads.emplace_back([&, i] {
        for (std::uint64_t seed = 1; seed <= 50; ++seed)
          t->encode(random_text(seed, 40), results[i]);
      });
  }
  for (const auto& r : results)
    CHECK(r == results.front());
}

TEST_CASE("the tiny model's golden prompts have their ids") {
  const auto t = testing::tiny_tokenizer();
  if (t == nullptr)
    return;
  CHECK(t->encode_with_added_tokens("<|im_start|>user\nHello!<|im_end|>\n<|im_start|>assistant\n") ==
        ids{3064, 265, 198, 1012, 0, 3065, 198, 3064, 266, 198});
  CHECK(t->size() == 3072);
}
