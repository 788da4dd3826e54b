// Which conversation a turn goes on with, and which comes next.
#include <doctest/doctest.h>

#include <map>
#include <random>

#include "memory/prefetch_predictor.hpp"
#include "tests/support/test_seeds.hpp"

using namespace troupe;

namespace {

std::vector<token_id> range(int from, int n) {
  std::vector<token_id> out;
  for (int i = 0; i < n; ++i)
    out.push_back(from + i);
  return out;
}

struct chat {
  explicit chat(int kind, int shared = 0) : tokens(range(0, shared)), kind_(kind) { say(5); }
  void say(int n) {
    for (const auto token : range(kind_ * 10'000 + static_cast<int>(tokens.size()), n))
      tokens.push_back(token);
  }
  conversation_number turn(prefetch_predictor& p, int answer = 9) {
    const auto number = p.begins(1, tokens);
    say(answer);
    p.ends(number, end_of(1, tokens));
    say(7); // the next question
    return number;
  }
  std::vector<token_id> tokens;

private:
  int kind_;
};

} // namespace

TEST_CASE("an end behind pages is the end of all tokens") {
  const auto all = range(3, 75);
  const auto whole = end_of(9, all);
  CHECK(whole.rest == 75 % limits::page_tokens);
  const auto pages = end_of(9, std::span(all).first(32));
  CHECK(pages.rest == 0);
  CHECK(pages.all == pages.pages);
  CHECK(end_behind(pages.pages, std::span(all).subspan(32)) == whole);
  CHECK(!(end_of(8, all) == whole));
}

TEST_CASE("a chat's turns are one conversation, whatever their length; others' are others, even behind a common beginning") {
  prefetch_predictor p(100);
  std::vector<chat> chats;
  for (int i = 0; i < 6; ++i)
    chats.emplace_back(i + 1, 40); // the first question ends within the page that all begin with
  std::vector<conversation_number> numbers;
  for (auto& c : chats)
    numbers.push_back(c.turn(p));
  for (int round = 0; round < 5; ++round)
    for (std::size_t i = 0; i < chats.size(); ++i)
      CHECK(chats[i].turn(p, 3 + round * 11) == numbers[i]);
  CHECK(p.size() == 6);
  p.check_invariants();
}

TEST_CASE("the same tokens of another tenant are another conversation") {
  prefetch_predictor p(100);
  const auto tokens = range(1, 50);
  CHECK(p.begins(1, tokens) != p.begins(2, tokens));
}

TEST_CASE("where the answer is rendered otherwise in the next turn, the prompt's end is recognised") {
  prefetch_predictor p(100);
  const auto prompt = range(1, 50);
  const auto number = p.begins(1, prompt);
  auto answered = prompt;
  answered.insert(answered.end(), {900, 901, 902});
  p.ends(number, end_of(1, answered));
  auto next = prompt;
  next.insert(next.end(), {800, 801, 802, 803});
  CHECK(p.begins(1, next) == number);
}

TEST_CASE("after one round of round robin every next conversation is known, and those after it") {
  prefetch_predictor p(100);
  std::vector<chat> chats;
  std::vector<conversation_number> numbers;
  for (int i = 0; i < 8; ++i) {
    chats.emplace_back(i + 1);
    numbers.push_back(chats.back().turn(p));
  }
  CHECK(p.next(numbers.back(), 2).empty());
  chats[0].turn(p);
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK(p.next(numbers[i], 1) == std::vector{numbers[(i + 1) % 8]});
    CHECK(p.next(numbers[i], 3) == std::vector{numbers[(i + 1) % 8], numbers[(i + 2) % 8], numbers[(i + 3) % 8]});
  }
  CHECK(p.next(numbers[0], 100).size() == 7); // each once
}

TEST_CASE("of several successors the one seen lately most often is first, and a new habit replaces the old within two rounds") {
  prefetch_predictor p(100);
  chat a(1), b(2), c(3);
  const auto na = a.turn(p), nb = b.turn(p), nc = c.turn(p);
  for (int i = 0; i < 3; ++i) {
    a.turn(p);
    b.turn(p);
  }
  CHECK(p.next(na, 1) == std::vector{nb});
  for (int i = 0; i < 2; ++i) {
    a.turn(p);
    c.turn(p);
  }
  CHECK(p.next(na, 1) == std::vector{nc});
}

TEST_CASE("it remembers no more than it may, and forgets whom it saw longest ago") {
  for (const auto seed : testing::test_seeds(5)) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    prefetch_predictor p(16);
    std::vector<chat> chats;
    for (int i = 0; i < 40; ++i)
      chats.emplace_back(i + 1, 20);
    std::map<std::size_t, std::pair<conversation_number, int>> known; // number, turn
    for (int turn = 0; turn < 3000; ++turn) {
      const auto i = random() % chats.size();
      if (chats[i].tokens.size() > 500)
        chats[i] = chat(static_cast<int>(i) + 1, 20), known.erase(i);
      const auto number = chats[i].turn(p);
      int later = 0; // others seen since
      if (known.contains(i))
        for (const auto& [other, seen] : known)
          later += seen.second > known.at(i).second;
      if (known.contains(i) && later < 14)
        CHECK(number == known.at(i).first);
      known[i] = {number, turn};
      REQUIRE(p.size() <= 16);
      p.check_invariants();
      for (const auto next : p.next(number, 4))
        CHECK(p.last_end(next).has_value());
    }
  }
}

TEST_CASE("one that may remember nothing recognises nothing") {
  prefetch_predictor p(0);
  CHECK(p.begins(1, range(1, 40)) == 0);
  CHECK(p.next(0, 3).empty());
}
