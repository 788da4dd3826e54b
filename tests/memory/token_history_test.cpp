// What a history of rendered conversations finds, keeps apart and forgets. Tokens here are made up: message m of a conversation
// is m + 1 times its number.
#include <doctest/doctest.h>

#include <random>

#include "base/check.hpp"
#include "memory/token_history.hpp"
#include "tests/support/test_seeds.hpp"

using namespace troupe;

namespace {

const hash_key key([random = std::mt19937_64(1)]() mutable { return random(); });

struct chat {
  std::string tenant = "a";
  std::vector<std::string> tools;
  std::vector<chat_message> messages;
  std::vector<message_form> forms;

  chat& say(std::string text, message_form form = message_form::plain) {
    messages.push_back({messages.size() % 2 == 0 ? "user" : "assistant", std::move(text), {}, {}, {}});
    forms.push_back(form);
    return *this;
  }
  std::vector<conversation_key> keys() const { return keys_of(key, {tenant, tools, messages, forms}); }

  // As a template would: a token a byte, one more for the message's end and two that open the answer.
  std::vector<token_id> tokens() const {
    std::vector<token_id> out;
    for (const auto& m : messages) {
      out.insert(out.end(), m.content.begin(), m.content.end());
      out.push_back(1000);
    }
    out.insert(out.end(), {1001, 1002});
    return out;
  }
  std::vector<message_end> ends(std::size_t first = 0) const {
    std::vector<message_end> out;
    std::size_t at = 0;
    for (std::size_t i = 0; i < messages.size(); ++i) {
      at += messages[i].content.size() + 1;
      if (i >= first)
        out.push_back({i + 1, at, "\n"});
    }
    return out;
  }
};

chat of(std::initializer_list<const char*> texts) {
  chat out;
  for (const char* text : texts)
    out.say(text);
  return out;
}

// Prepares the chat as a worker does; how many of its messages were known.
std::size_t prepare(token_history& history, const chat& c) {
  const auto keys = c.keys();
  const auto known = history.find(keys);
  const auto tokens = c.tokens();
  REQUIRE(std::equal(known.tokens().begin(), known.tokens().end(), tokens.begin()));
  const auto messages = known.end().messages;
  if (messages > 0) {
    REQUIRE(known.end().tokens == c.ends()[messages - 1].tokens);
    REQUIRE(known.tokens().size() == known.end().tokens);
    REQUIRE(known.end().open_text == "\n");
  }
  history.remember(known, keys, tokens, c.ends(messages));
  history.check_invariants();
  return messages;
}

void change(chat& c, const std::vector<chat>& others, std::mt19937_64& random) {
  const auto what = random() % 20;
  if (what == 0)
    c = {};
  else if (what == 1 && !c.messages.empty())
    c.messages[random() % c.messages.size()].content += "x";
  else if (what == 2 && !c.messages.empty())
    c.forms[random() % c.forms.size()] = static_cast<message_form>(random() % 3);
  else if (what == 3)
    c = others[random() % others.size()];
  else if (what == 4)
    c.tenant = random() % 2 ? "a" : "b";
  if (c.messages.size() < 40)
    c.say(std::string(random() % 30, static_cast<char>('a' + random() % 2)));
}

constexpr std::size_t plenty = 1u << 20;

} // namespace

TEST_CASE("a turn finds all that the turn before it had") {
  token_history history(plenty);
  chat c = of({"hello"});
  CHECK(prepare(history, c) == 0);
  for (std::size_t turn = 1; turn < 20; ++turn) {
    c.say("answer").say("question");
    CHECK(prepare(history, c) == 2 * turn - 1);
  }
  CHECK(prepare(history, c) == c.messages.size());
  CHECK(history.stats().conversations == 1);
  CHECK(history.stats().messages == c.messages.size());
}

TEST_CASE("an edit leaves the past up to it, and the old conversation stays for who returns") {
  token_history history(plenty);
  const chat first = of({"one", "two", "three", "four", "five"});
  CHECK(prepare(history, first) == 0);
  CHECK(prepare(history, of({"one", "two", "3", "four", "five"})) == 2);
  CHECK(prepare(history, of({"one", "two", "3", "four", "five", "six"})) == 5);
  CHECK(prepare(history, first) == 5);
  CHECK(prepare(history, of({"one", "two"})) == 2); // cut short: nothing new
  CHECK(history.stats().conversations == 2);
  CHECK(prepare(history, of({"onetwo"})) == 0);
  CHECK(prepare(history, of({"one", "two", "thre", "efour"})) == 2);
}

TEST_CASE("another tenant, other tools, another form or role know nothing of each other") {
  token_history history(plenty);
  const chat base = of({"one", "two", "three"});
  CHECK(prepare(history, base) == 0);
  chat other = base;
  other.tenant = "b";
  CHECK(prepare(history, other) == 0);
  other = base;
  other.tools = {"{}"};
  CHECK(prepare(history, other) == 0);
  other.tools = {"{}", "{}"};
  CHECK(prepare(history, other) == 0);
  other = base;
  other.forms[1] = message_form::thinking;
  CHECK(prepare(history, other) == 1);
  other = base;
  other.messages[0].role = "system";
  CHECK(prepare(history, other) == 0);
  other = base;
  other.messages[1].reasoning = "because";
  CHECK(prepare(history, other) == 1);
  other.messages[1].reasoning = "two";
  other.messages[1].content = "because";
  CHECK(prepare(history, other) == 1);
}

TEST_CASE("calls of tools are told apart by name and arguments, not by id") {
  chat c = of({"one", "two"});
  c.messages[1].tool_calls = {{"id 1", "f", "{}"}, {"id 2", "g", "{}"}};
  const auto keys = c.keys();
  c.messages[1].tool_calls[0].id = "id 3";
  CHECK(c.keys() == keys);
  c.messages[1].tool_calls[1].name = "f";
  CHECK_FALSE(c.keys()[1] == keys[1]);
  c.messages[1].tool_calls[1].name = "g{}";
  c.messages[1].tool_calls[1].arguments = "";
  CHECK_FALSE(c.keys()[1] == keys[1]);
  CHECK(c.keys()[0] == keys[0]);
}

TEST_CASE("messages without a place to take up again are passed over") {
  token_history history(plenty);
  chat c = of({"one", "two", "three"});
  auto ends = c.ends();
  ends.erase(ends.begin() + 1);
  history.remember(history.find(c.keys()), c.keys(), c.tokens(), ends);
  history.check_invariants();
  CHECK(history.find(of({"one", "two"}).keys()).end().messages == 1);
  CHECK(history.find(of({"one", "two", "three", "four"}).keys()).end().messages == 3);
}

TEST_CASE("at the bound the conversation used longest ago is forgotten, whole") {
  token_history history(20'000);
  const auto numbered = [](int n) { return of({"system"}).say("answer " + std::to_string(n)).say(std::string(400, 'x')); };
  for (int n = 0; n < 100; ++n) {
    prepare(history, numbered(n));
    prepare(history, numbered(0)); // in use all the time
    CHECK(history.stats().bytes <= 20'000);
  }
  CHECK(history.stats().forgotten > 50);
  CHECK(history.stats().conversations + history.stats().forgotten == 100);
  CHECK(prepare(history, numbered(0)) == 3);
  CHECK(prepare(history, numbered(99)) == 3);
  CHECK(prepare(history, numbered(1)) == 1); // the shared beginning is known from others
}

TEST_CASE("a conversation that alone exceeds the bound is not kept and costs the others nothing") {
  token_history history(4'000);
  CHECK(prepare(history, of({"small"})) == 0);
  chat big = of({"big"});
  CHECK(prepare(history, big) == 0);
  big.say(std::string(5'000, 'x'));
  CHECK(prepare(history, big) == 1);
  CHECK(prepare(history, big) == 0);
  CHECK(prepare(history, of({"small"})) == 1);
  CHECK(history.stats().conversations == 1);
}

TEST_CASE("an emptied history knows nothing and holds nothing") {
  token_history history(plenty);
  prepare(history, of({"one", "two"}));
  history.clear();
  history.check_invariants();
  CHECK(history.stats().bytes == 0);
  CHECK(prepare(history, of({"one", "two"})) == 0);
}

TEST_CASE("random conversations always find a beginning of their own, and the bound holds") {
  for (const auto seed : testing::test_seeds(4)) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    token_history history(60'000);
    std::vector<chat> chats(8);
    std::uint64_t known = 0;
    for (int i = 0; i < 5'000; ++i) {
      change(chats[random() % chats.size()], chats, random);
      known += prepare(history, chats[random() % chats.size()]);
      REQUIRE(history.stats().bytes <= 60'000);
    }
    CHECK(known > 10'000);
    CHECK(history.stats().forgotten > 0);
  }
}
