// Normalisation to NFC, as of Unicode 9.
#include <chrono>
#include <doctest/doctest.h>

#include "model/unicode.hpp"
#include "model/unicode_nfc.hpp"

using namespace troupe::unicode;

TEST_CASE("accents compose, marks are put in order, singletons are replaced") {
  CHECK(to_nfc("e\u0301") == "\u00e9");
  CHECK(to_nfc("\u212b") == "\u00c5");
  CHECK(to_nfc("q\u0307\u0323") == "q\u0323\u0307");
  CHECK(to_nfc("s\u0307\u0323") == "\u1e69");
  CHECK(to_nfc("\u1e9b\u0323") == "\u1e9b\u0323");
  CHECK(to_nfc("\u0344") == "\u0308\u0301");
  CHECK(to_nfc("\u0958") == "\u0915\u093c"); // excluded from composition
  CHECK(to_nfc("\u09c7\u09be") == "\u09cb");
  CHECK(to_nfc("\u1100\u1161\u11a8") == "\uac01");
  CHECK(to_nfc("\uac00\u11a8") == "\uac01");
  CHECK(to_nfc("\u0041\u0301\u0327") == "\u00c1\u0327");
  CHECK(to_nfc("\ufb01") == "\ufb01"); // a compatibility form stays
}

TEST_CASE("text that needs nothing is known as such") {
  for (const char* text : {"", "plain", "naïve café", "你好，世界", "Привет", "한국어", "👍🏽", "日本語 カタカナ"}) {
    CAPTURE(text);
    CHECK_FALSE(may_need_nfc(text));
    CHECK(to_nfc(text) == text);
  }
  for (const char* text : {"e\u0301", "\u212b", "12345678\u0301", "\u1100\u1161"}) {
    CAPTURE(text);
    CHECK(may_need_nfc(text));
  }
}

TEST_CASE("only the clusters with marks change; ill-formed bytes stay") {
  CHECK(to_nfc("ab e\u0301 cd") == "ab \u00e9 cd");
  CHECK(to_nfc("\u0301 e\u0301\u0301") == "\u0301 \u00e9\u0301");
  CHECK(to_nfc("\xFF\u0301"
               "e\u0301\xE4\xBD") == "\xFF\u0301\u00e9\xE4\xBD");
  CHECK(to_nfc("e\xFF\u0301") == "e\xFF\u0301");
}

TEST_CASE("marks newer than Unicode 9 neither move nor join") {
  CHECK(to_nfc("\U00011372\U0001193e") == "\U00011372\U0001193e");
  CHECK(to_nfc("\u05d0\u05b8\U00011d42") == "\u05d0\u05b8\U00011d42");
  CHECK(to_nfc("\U00011935\U00011930") == "\U00011935\U00011930");
  CHECK(to_nfc("\U00011938\u0301\u0323") == "\U00011938\u0323\u0301");
  CHECK_FALSE(is_newer_than_nfc(0x301));
  CHECK(is_newer_than_nfc(0x1ACE));
  CHECK_FALSE(is_newer_than_nfc(0x1ACF));
  CHECK_FALSE(is_newer_than_nfc(0x10FFFF));
}

TEST_CASE("a long run of marks in the worst order takes no quadratic time") {
  std::string text = "a", expected = "a";
  constexpr int pairs = 200'000; // ten seconds and more if every mark travelled the whole run
  for (int i = 0; i < pairs; ++i)
    text += "\u0315\u0334";
  for (int i = 0; i < pairs; ++i)
    expected += "\u0334";
  for (int i = 0; i < pairs; ++i)
    expected += "\u0315";
  const auto start = std::chrono::steady_clock::now();
  const bool same = to_nfc(text) == expected;
  CHECK(same);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
}

TEST_CASE("strip takes white space at both ends as Python does, and nothing else") {
  CHECK(strip("  a b \n") == "a b");
  CHECK(strip("\u3000\u00a0x\u2028\x1c") == "x");
  CHECK(strip("\u200bx\u200b") == "\u200bx\u200b");
  CHECK(strip(" \t\r\n").empty());
  CHECK(strip("").empty());
  CHECK(strip("\x80 ") == "\x80");
}
