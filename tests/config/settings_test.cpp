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
