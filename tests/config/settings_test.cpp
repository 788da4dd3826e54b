#include <doctest/doctest.h>

#include <cstdlib>

#include "config/settings.hpp"

using namespace troupe;

TEST_CASE("a YAML file changes the settings that it names and leaves the others") {
  settings s;
  REQUIRE(apply_yaml(s, "server:\n  port: 9000\nmemory:\n  prefix_reuse: off\n"));
  CHECK(s.server.port == 9000);
  CHECK_FALSE(s.memory.prefix_reuse);
  CHECK(s.server.host == "127.0.0.1");
}

TEST_CASE("an unknown setting is refused by its name and line") {
  settings s;
  const auto done = apply_yaml(s, "server:\n  prot: 9000\n");
  REQUIRE_FALSE(done);
  CHECK(done.fault().message == "line 2: unknown setting 'server.prot'");
}

TEST_CASE("a number out of range or with a tail is refused and nothing is changed") {
  settings s;
  for (const char* bad : {"server.port=65536", "server.port=-1", "server.port=80x", "server.port=", "server.port=99999999999",
                          "memory.token_history_mib=0", "memory.token_history_mib=16385"}) {
    CAPTURE(bad);
    CHECK_FALSE(apply_override(s, bad));
  }
  CHECK(s.server.port == 8000);
  CHECK(s.memory.token_history_mib == 64);
}

TEST_CASE("a setting with few values refuses others and names those it has") {
  settings s;
  const auto done = apply_override(s, "memory.prefix_eviction=fifo");
  REQUIRE_FALSE(done);
  CHECK(done.fault().message == "memory.prefix_eviction: 'fifo' is none of lru, lfu");
  REQUIRE(apply_override(s, "memory.prefix_eviction=lfu"));
  CHECK(s.memory.prefix_eviction == "lfu");
  CHECK_FALSE(apply_override(s, "memory.prompt_states=4097"));
  CHECK_FALSE(apply_override(s, "memory.pinned_percent=91"));
  CHECK_FALSE(apply_override(s, "memory.prefix_ttl_s=31536001"));
  CHECK(apply_override(s, "memory.partial_pages=off"));
  CHECK_FALSE(s.memory.partial_pages);
}

TEST_CASE("an override without section or value is refused") {
  settings s;
  CHECK_FALSE(apply_override(s, "port=1"));
  CHECK_FALSE(apply_override(s, "server.port"));
  CHECK(apply_override(s, "model.alias=a=b"));
  CHECK(s.model.alias == "a=b");
}

TEST_CASE("broken YAML gives one line with its place") {
  settings s;
  const auto done = apply_yaml(s, "server:\n  port: [1\n");
  REQUIRE_FALSE(done);
  CHECK(done.fault().message.find("settings: line") == 0);
  CHECK_FALSE(apply_yaml(s, "- 1\n"));
  CHECK_FALSE(apply_yaml(s, "server: 3\n"));
  CHECK(apply_yaml(s, ""));
}

TEST_CASE("the environment overrides by TROUPE_SECTION_KEY") {
  settings s;
  setenv("TROUPE_SERVER_PORT", "1234", 1);
  CHECK(apply_environment(s));
  CHECK(s.server.port == 1234);
  setenv("TROUPE_SERVER_PORT", "many", 1);
  const auto done = apply_environment(s);
  unsetenv("TROUPE_SERVER_PORT");
  REQUIRE_FALSE(done);
  CHECK(done.fault().message.find("environment TROUPE_SERVER_PORT") == 0);
}

TEST_CASE("keys and values are halves unless a type is named for each") {
  settings s;
  CHECK(s.memory.kv_keys == "f16");
  CHECK(s.memory.kv_values == "f16");
  REQUIRE(apply_yaml(s, "memory:\n  kv_keys: int8\n"));
  CHECK(apply_override(s, "memory.kv_values=int4"));
  CHECK(s.memory.kv_keys == "int8");
  CHECK(s.memory.kv_values == "int4");
}

TEST_CASE("nothing outlives the process unless persistence is switched on") {
  settings s;
  CHECK_FALSE(s.memory.persistence);
  REQUIRE(apply_yaml(s, "memory:\n  persistence: on\n  state_dir: /var/lib/troupe\n"));
  CHECK(s.memory.persistence);
  CHECK(s.memory.state_dir == "/var/lib/troupe");
  CHECK_FALSE(apply_override(s, "memory.persistence=maybe"));
}

TEST_CASE("every described line can be applied again") {
  settings s;
  s.server.port = 77;
  settings t;
  const auto text = describe(s);
  std::size_t at = 0;
  while (at < text.size()) {
    const auto end = text.find('\n', at);
    CHECK(apply_override(t, text.substr(at, end - at)));
    at = end + 1;
  }
  CHECK(describe(t) == text);
}

TEST_CASE("a list is written in YAML as a list or with commas, and is not a list of nothing") {
  settings s;
  REQUIRE(apply_yaml(s, "server:\n  api_keys: [a, b]\n  allowed_origins: x,y\n"));
  CHECK(s.server.api_keys == std::vector<std::string>{"a", "b"});
  CHECK(s.server.allowed_origins == std::vector<std::string>{"x", "y"});
  CHECK_FALSE(apply_override(s, "server.api_keys=,"));
  CHECK(s.server.api_keys.size() == 2);
  const auto map = apply_yaml(s, "server:\n  api_keys: {a: b}\n");
  REQUIRE_FALSE(map);
  CHECK(map.fault().message == "line 2: server.api_keys: neither a value nor a list of values");
}

TEST_CASE("a misspelt name in the environment stops the start, other programs' names do not") {
  settings s;
  setenv("TROUPE_SERVER_PROT", "1234", 1);
  const auto done = apply_environment(s);
  unsetenv("TROUPE_SERVER_PROT");
  REQUIRE_FALSE(done);
  CHECK(done.fault().message == "environment TROUPE_SERVER_PROT: there is no such setting");
  setenv("TROUPE_SOMETHING", "1", 1);
  CHECK(apply_environment(s));
  unsetenv("TROUPE_SOMETHING");
}

TEST_CASE("tiers are off unless one has a size, and refuse what is beyond their limits") {
  settings s;
  CHECK(s.memory.host_tier_mib == 0);
  CHECK(s.memory.disk_tier_mib == 0);
  REQUIRE(apply_yaml(s, "memory:\n  disk_tier_mib: 512\n  tier_dir: /srv/kv\n  tier_ttl_s: 86400\n"));
  CHECK(s.memory.disk_tier_mib == 512);
  CHECK(s.memory.tier_dir == "/srv/kv");
  CHECK(s.memory.tier_ttl_s == 86'400);
  CHECK_FALSE(apply_override(s, "memory.host_tier_mib=-1"));
  CHECK_FALSE(apply_override(s, "memory.prefetch_ahead=9"));
  CHECK(apply_override(s, "memory.prefetch_ahead=0"));
}
