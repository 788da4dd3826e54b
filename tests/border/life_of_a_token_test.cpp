// LIFE_OF_A_TOKEN.md names a file and a function a step; each must exist, so that the page can be trusted.
//
// A step is a numbered line that holds `path/file.ext` and, after it, one or more `name()`; each name must stand in that file.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>

namespace fs = std::filesystem;

namespace {

std::string text_of(const fs::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

} // namespace

TEST_CASE("every step of LIFE_OF_A_TOKEN.md names a file and functions that exist") {
  const fs::path root = TROUPE_SOURCE_DIR;
  std::istringstream page(text_of(root / "LIFE_OF_A_TOKEN.md"));
  const std::regex step(R"(^\d+\. )");
  const std::regex file(R"(`([a-z_]+/[a-z_/]+\.(?:hpp|cpp|html|js))`)");
  const std::regex function(R"(`([a-z_0-9:]+)\(\)`)");
  std::string line;
  int steps = 0;
  while (std::getline(page, line)) {
    if (!std::regex_search(line, step))
      continue;
    ++steps;
    CAPTURE(line);
    std::smatch found;
    REQUIRE(std::regex_search(line, found, file));
    const std::string path = found[1];
    CAPTURE(path);
    REQUIRE(fs::exists(root / path));
    const std::string source = text_of(root / path);
    int functions = 0;
    for (std::sregex_iterator at(line.begin(), line.end(), function), end; at != end; ++at, ++functions) {
      std::string name = (*at)[1];
      if (const auto colons = name.rfind("::"); colons != std::string::npos)
        name = name.substr(colons + 2);
      CAPTURE(name);
      CHECK(std::regex_search(source, std::regex("\\b" + name + "\\b")));
    }
    CHECK(functions >= 1);
  }
  CHECK(steps >= 8);
  CHECK(steps <= 12);
}
