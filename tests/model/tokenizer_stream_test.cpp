// The streaming decoder gives what decoding the whole gives.
#include <doctest/doctest.h>

#include "base/random.hpp"
#include "model/tokenizer.hpp"

using namespace troupe;

namespace {

constexpr auto mark = "\xEF\xBF\xBD";

std::string whole(std::string_view bytes) {
  utf8_stream s;
  auto out = s.push(bytes);
  return out + s.finish();
}

std::string marks(int n) {
  std::string out;
  for (int i = 0; i < n; ++i)
    out += mark;
  return out;
}

} // namespace

TEST_CASE("characters come out whole, as soon as their last byte is there") {
  utf8_stream s;
  CHECK(s.push("a\xE4") == "a");
  CHECK(s.push("\xBD").empty());
  CHECK(s.push("\xA0\xF0\x9F\x91") == "你");
  CHECK(s.push("\x8D!") == "👍!");
  CHECK(s.finish().empty());
}

TEST_CASE("an unfinished character at the end becomes one replacement character") {
  CHECK(whole("a\xE4\xBD") == "a" + marks(1));
  CHECK(whole("\xF0\x9F\x91") == marks(1));
  CHECK(whole("\xC3") == marks(1));
  utf8_stream s;
  CHECK(s.push("\xE4").empty());
  CHECK(s.finish() == mark);
  CHECK(s.push("x") == "x"); // a stream may be used again
}

TEST_CASE("each maximal ill-formed part becomes one replacement character, as in Python") {
  CHECK(whole("\x80\xBF") == marks(2));
  CHECK(whole("\xC0\xAF") == marks(2));
  CHECK(whole("\xE0\x80\xAF") == marks(3));
  CHECK(whole("\xED\xA0\x80") == marks(3));
  CHECK(whole("\xF0\x80\x80\x80") == marks(4));
  CHECK(whole("\xF4\x90\x80\x80") == marks(4));
  CHECK(whole("\xF5\xFF") == marks(2));
  CHECK(whole("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41") == marks(4) + "A"); // the Unicode Standard's own example
  CHECK(whole("\xE4\xBDx\xE4") == marks(1) + "x" + marks(1));
}

TEST_CASE("however the bytes are cut, the pieces together are the whole") {
  const std::string_view stock[] = {"a", "é", "你", "👍", "\x80", "\xE4\xBD", "\xF0\x9F", "\xED\xA0\x80", "\xFF", "\n"};
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    CAPTURE(seed);
    std::string bytes;
    for (std::uint64_t i = 0; i < 30; ++i)
      bytes += stock[random_at(seed, i) % std::size(stock)];
    utf8_stream s;
    std::string joined;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t n = 1 + random_at(seed, 1000 + at) % 5;
      const std::string piece = s.push(std::string_view(bytes).substr(at, n));
      CHECK(whole(piece) == piece); // every piece is well-formed by itself
      joined += piece;
      at += n;
    }
    joined += s.finish();
    CHECK(joined == whole(bytes));
  }
}
