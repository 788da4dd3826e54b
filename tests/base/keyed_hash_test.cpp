#include <doctest/doctest.h>

#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/keyed_hash.hpp"

using namespace troupe;

namespace {

hash_key key_of(std::uint64_t seed) {
  return hash_key([random = std::mt19937_64(seed)]() mutable { return random(); });
}

hash_value hash_of(const hash_key& key, const std::vector<std::string>& texts) {
  keyed_hasher hasher(key);
  for (const auto& text : texts)
    hasher.add(text);
  return hasher.value();
}

} // namespace

TEST_CASE("equal sequences have equal values, wherever their bytes lie") {
  const auto key = key_of(1);
  for (std::size_t size = 0; size < 600; ++size) {
    const std::string text(size, 'x');
    for (const std::size_t offset : {1u, 3u, 8u}) {
      const std::string moved = std::string(offset, '?') + text + "?";
      keyed_hasher hasher(key);
      hasher.add(std::string_view(moved).substr(offset, size));
      CHECK(hasher.value() == hash_of(key, {text}));
    }
  }
}

TEST_CASE("any change of a byte, a length or a border between texts changes both halves of the value") {
  const auto key = key_of(2);
  std::set<std::uint64_t> first, second;
  std::size_t count = 0;
  const auto add = [&](const std::vector<std::string>& texts) {
    const auto value = hash_of(key, texts);
    first.insert(value.a);
    second.insert(value.b);
    ++count;
  };
  for (std::size_t size = 0; size < 300; ++size)
    add({std::string(size, '\0')}); // lengths of zeros
  for (std::size_t at = 0; at < 520; ++at)
    for (const int bit : {0, 7}) {
      std::string text(520, 'a');
      text[at] = static_cast<char>(text[at] ^ (1 << bit));
      add({text});
    }
  for (std::size_t size = 1; size < 40; ++size) // the last bytes are read in several ways
    for (std::size_t at = 0; at < size; ++at) {
      std::string text(size, 'c');
      text[at] = 'd';
      add({text});
    }
  for (std::size_t cut = 0; cut <= 20; ++cut)
    add({std::string(cut, 'b'), std::string(20 - cut, 'b')});
  add({});
  add({"", ""});
  add({"", "", ""});
  CHECK(first.size() == count);
  CHECK(second.size() == count);
}

TEST_CASE("the value depends on the key, and a beginning's value is what it would be alone") {
  const std::vector<std::string> texts{"one", std::string(1000, 'z'), "three"};
  CHECK_FALSE(hash_of(key_of(3), texts) == hash_of(key_of(4), texts));
  const auto key = key_of(3);
  keyed_hasher hasher(key);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    hasher.add(texts[i]);
    CHECK(hasher.value() == hash_of(key, {texts.begin(), texts.begin() + static_cast<std::ptrdiff_t>(i) + 1}));
  }
}

TEST_CASE("values of random texts spread evenly over their bits") {
  const auto key = key_of(5);
  std::mt19937_64 random(6);
  constexpr int texts = 4096;
  std::vector<int> ones(2 * 61);
  for (int i = 0; i < texts; ++i) {
    std::string text(random() % 40, '\0');
    for (char& c : text)
      c = static_cast<char>(random() % 4);
    keyed_hasher hasher(key);
    hasher.add(static_cast<std::uint64_t>(i));
    hasher.add(text);
    for (std::size_t bit = 0; bit < 61; ++bit) {
      ones[bit] += static_cast<int>(hasher.value().a >> bit & 1);
      ones[61 + bit] += static_cast<int>(hasher.value().b >> bit & 1);
    }
  }
  for (const int n : ones) { // 6 standard deviations
    CHECK(n > texts / 2 - 6 * 32);
    CHECK(n < texts / 2 + 6 * 32);
  }
}

TEST_CASE("a number beyond a word is our own mistake") {
  const auto key = key_of(7);
  keyed_hasher hasher(key);
  hasher.add((std::uint64_t{1} << 60) - 1);
  CHECK_THROWS_AS(hasher.add(std::uint64_t{1} << 60), check_failed);
}
