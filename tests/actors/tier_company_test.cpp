// KV tiers as a client meets them: chats that left the device go on without prefill, whatever dies meanwhile.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>

#include "actors/session/session_logic.hpp"
#include "base/random.hpp"
#include "tests/actors/fixture.hpp"
#include "tests/support/test_seeds.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

// Raw prompts that grow with each turn: tokens are bytes, so their places are known.
struct chat {
  explicit chat(int number) : text("chat " + std::to_string(number) + ": ") {
    for (int i = 0; i < 5; ++i)
      text += "line " + std::to_string(i * number + 7) + " of the story, ";
  }
  std::string text;
  int turns = 0;
};

constexpr int answer_tokens = 6;

std::shared_ptr<collecting_sink> next_turn(company_fixture& house, chat& c) {
  c.text += "turn " + std::to_string(++c.turns) + "? ";
  generation_request r;
  r.prompt = c.text;
  r.max_tokens = answer_tokens;
  r.ignore_eos = true;
  r.sampling.temperature = 0;
  return house.ask(std::move(r));
}

// Two chats fit into the device, 8 come in turn.
company_options crowded() {
  company_options o;
  o.shards = 1;
  o.device->pages = 40;
  o.context_tokens = 512;
  o.device->step_tokens_max = 256;
  o.step_tokens = 256;
  o.tier_pages = {0, 400};
  return o;
}

struct figures {
  std::uint64_t prompt_tokens = 0, cached_tokens = 0;
  std::vector<std::string> texts;
};

figures play(company_fixture& house, std::vector<chat>& chats, int rounds) {
  figures out;
  for (int round = 0; round < rounds; ++round)
    for (auto& c : chats) {
      const auto length = c.text.size();
      const auto sink = next_turn(house, c);
      house.run();
      REQUIRE(sink->finished());
      const auto usage = sink->finished()->usage;
      out.prompt_tokens += static_cast<std::uint64_t>(usage.prompt_tokens);
      out.cached_tokens += static_cast<std::uint64_t>(usage.cached_tokens);
      out.texts.push_back(sink->text());
      if (c.turns > 1) // all but what is new: the last token sampled, which was never computed, and the question
        CHECK(usage.cached_tokens == static_cast<int>(length) - 1);
      c.text += sink->text();
      CHECK(house.all_pages_back());
    }
  return out;
}

std::vector<chat> some_chats(int n) {
  std::vector<chat> out;
  for (int i = 1; i <= n; ++i)
    out.emplace_back(i);
  return out;
}

bool has_line(company_fixture& house, const std::string& line) {
  return house.port->metrics_text().find(line + "\n") != std::string::npos;
}

} // namespace

TEST_CASE("chats that do not fit into the device go on without prefill, with the tokens of a device that holds them all") {
  auto roomy = crowded();
  roomy.device->pages = 1000;
  roomy.tier_pages = {};
  std::vector<std::string> expected;
  {
    company_fixture house(roomy);
    auto chats = some_chats(8);
    expected = play(house, chats, 4).texts;
  }
  struct tiers {
    std::uint32_t host, disk;
    int ahead;
  };
  for (const auto& [host, disk, ahead] : {tiers{0, 400, 0}, {400, 0, 0}, {20, 400, 0}, {0, 400, 2}, {400, 400, 1}}) {
    CAPTURE(host);
    CAPTURE(disk);
    CAPTURE(ahead);
    auto options = crowded();
    options.device = std::make_shared<fake_device>();
    options.device->pages = 40;
    options.device->step_tokens_max = 256;
    options.tier_pages = {host, disk};
    options.prefetch_ahead = ahead;
    company_fixture house(options);
    auto chats = some_chats(8);
    CHECK(play(house, chats, 4).texts == expected);
    const auto& m = *house.context->metrics;
    CHECK(m.tier_pages_up[0] + m.tier_pages_up[1] > 50);
    CHECK((m.tier_pages_up[0] > 0) == (host == 400)); // what is used in turn and does not fit leaves before its turn
    CHECK(m.tier_lost == 0);
    CHECK(m.tier_damaged + m.tier_failed == 0);
    CHECK(house.device->pages_written == static_cast<int>(m.tier_pages_up[0] + m.tier_pages_up[1]));
    CHECK(house.device->pages_read == static_cast<int>(m.tier_pages_down));
    if (ahead > 0) {
      CHECK(m.tier_prefetch_used > 50);
      CHECK(m.tier_misses <= 2); // the second round's first turn follows one that nothing had followed yet
    } else {
      CHECK(m.tier_misses > 20);
    }
    CHECK(has_line(house, "troupe_tier_lookups_total " + std::to_string(m.tier_lookups)));
  }
}

TEST_CASE("without tiers the same chats are read again, and nothing is said of tiers but zeros") {
  auto options = crowded();
  options.tier_pages = {};
  company_fixture house(options);
  auto chats = some_chats(8);
  std::vector<int> cached;
  for (int round = 0; round < 2; ++round)
    for (auto& c : chats) {
      const auto sink = next_turn(house, c);
      house.run();
      cached.push_back(sink->finished()->usage.cached_tokens);
      c.text += sink->text();
    }
  CHECK(*std::max_element(cached.begin(), cached.end()) < 40);
  CHECK(has_line(house, "troupe_tier_pages{tier=\"disk\"} 0"));
  CHECK(has_line(house, "troupe_tier_copy_seconds_total 0"));
}

TEST_CASE("copies that fail cost a prefill and nothing else") {
  auto options = crowded();
  company_fixture house(options);
  auto chats = some_chats(8);
  play(house, chats, 1);
  const auto some_turns = [&] {
    std::vector<int> missing;
    for (auto& c : chats) {
      const auto length = static_cast<int>(c.text.size());
      const auto sink = next_turn(house, c);
      house.run();
      REQUIRE(sink->finished());
      missing.push_back(length - 1 - sink->finished()->usage.cached_tokens);
      c.text += sink->text();
      CHECK(house.all_pages_back());
    }
    return missing;
  };
  house.device->fail_copies = 3; // asked for once more
  const auto few = some_turns();
  CHECK(std::count(few.begin(), few.end(), 0) == 8);
  house.device->fail_copies = 1'000'000;
  const auto all = some_turns();
  CHECK(*std::max_element(all.begin(), all.end()) > 100);
  house.device->fail_copies = 0;
  CHECK(house.context->metrics->tier_failed > 50);
  some_turns();
  CHECK(std::count_if(house.log.begin(), house.log.end(), [](const auto& line) {
          return line.find("a page could not be moved") != std::string::npos;
        }) == 1); // once for the same reason
  play(house, chats, 2);
}

TEST_CASE("a prompt that is expected comes up before it is asked for") {
  company_fixture house(crowded());
  auto chats = some_chats(8);
  play(house, chats, 2);
  const auto& shard = house.front->peers()->shards.at(0).handle;
  const auto salt = salt_of("", house.context->secret);
  std::vector<token_id> tokens(chats[0].text.begin(), chats[0].text.end());
  caf::anon_send(shard, expect_prompt{salt, std::make_shared<const std::vector<token_id>>(tokens)});
  house.run();
  const auto misses = house.context->metrics->tier_misses.load();
  CHECK(house.context->metrics->tier_pages_prefetched > 3);
  const auto sink = next_turn(house, chats[0]);
  house.run();
  CHECK(house.context->metrics->tier_misses == misses);
  CHECK(house.context->metrics->tier_prefetch_used == house.context->metrics->tier_pages_prefetched);
}

TEST_CASE("a request that is cancelled while its pages come up ends at once, and everything comes back") {
  company_fixture house(crowded());
  auto chats = some_chats(8);
  play(house, chats, 2);
  const auto sink = next_turn(house, chats[0]);
  while (house.trace().empty() || house.trace().back() != "transfer_stream move_pages")
    REQUIRE(house.step());
  house.port->cancel(house.last_request);
  house.run();
  CHECK(sink->ends() == 1);
  CHECK(house.all_pages_back());
  CHECK(house.context->metrics->overlap.read().copying.count() == 0); // the clock stands still here
}

TEST_CASE("whatever dies while chats take turns, each goes on with its own tokens and every page comes back") {
  auto roomy = crowded();
  roomy.device->pages = 1000;
  roomy.tier_pages = {};
  constexpr int rounds = 4;
  std::vector<std::string> expected;
  {
    company_fixture house(roomy);
    auto chats = some_chats(6);
    expected = play(house, chats, rounds).texts;
  }
  std::uint64_t up = 0;
  for (const auto seed : testing::test_seeds(60)) {
    CAPTURE(seed);
    auto options = crowded();
    options.device = std::make_shared<fake_device>();
    options.device->pages = 40;
    options.device->step_tokens_max = 256;
    options.tier_pages = {seed % 3 == 0 ? 30u : 0u, 400};
    options.prefetch_ahead = static_cast<int>(seed % 2);
    company_fixture house(options);
    house.shuffle(seed);
    std::uint64_t drawn = 0;
    const auto below = [&](std::uint64_t n) { return random_at(seed, ++drawn) % n; };
    auto chats = some_chats(6);
    std::vector<std::string> texts;
    for (int round = 0; round < rounds; ++round)
      for (std::size_t i = 0; i < chats.size(); i += 2) { // two at a time
        std::array sinks{next_turn(house, chats[i]), next_turn(house, chats[i + 1])};
        const auto deaths = below(3);
        for (std::uint64_t death = 0; death < deaths; ++death) {
          for (auto steps = below(60); steps > 0 && house.step(); --steps) {
          }
          constexpr std::array victims{actor_kind::batcher, actor_kind::kv_shard, actor_kind::compute_stream,
                                       actor_kind::transfer_stream, actor_kind::transfer_stream};
          if (below(3) > 0 || texts.size() < 8)
            house.kill(victims[below(victims.size())]);
        }
        house.run_until([&] { return sinks[0]->ends() > 0 && sinks[1]->ends() > 0; });
        for (std::size_t j = 0; j < 2; ++j) {
          REQUIRE(sinks[j]->finished());
          chats[i + j].text += sinks[j]->text();
          texts.push_back(sinks[j]->text());
        }
        house.advance(std::chrono::seconds(61)); // the restarts are forgotten
        house.run_until([&] { return false; });
        CHECK(house.all_pages_back());
      }
    CHECK(texts == expected);
    up += house.context->metrics->tier_pages_up[0] + house.context->metrics->tier_pages_up[1];
  }
  CHECK(up > 1000); // else this shows nothing
}
