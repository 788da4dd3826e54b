// Holds the picture in ARCHITECTURE.md: who may include whom, and which folder is home to which library.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace fs = std::filesystem;

namespace {

struct include_line {
  std::string folder; // of the including file, its first path component
  std::string file;   // relative to the root
  std::string target; // what stands between the quotes or brackets
};

std::vector<include_line> all_includes() {
  const fs::path root = TROUPE_SOURCE_DIR;
  const std::regex pattern(R"(^\s*#\s*include\s*[<"]([^>"]+)[>"])");
  std::vector<include_line> found;
  for (const char* folder : {"base", "config", "model", "cpu", "gpu", "memory", "storage", "index", "io", "actors", "app"}) {
    if (!fs::exists(root / folder))
      continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const auto extension = entry.path().extension();
      if (extension != ".hpp" && extension != ".cpp" && extension != ".cu" && extension != ".cuh" && extension != ".h")
        continue;
      std::ifstream in(entry.path());
      std::string line;
      std::smatch match;
      while (std::getline(in, line))
        if (std::regex_search(line, match, pattern))
          found.push_back({folder, fs::relative(entry.path(), root).string(), match[1]});
    }
  }
  return found;
}

std::string first_component(const std::string& path) { return path.substr(0, path.find('/')); }

// Our own folders each folder may include, besides itself.
const std::map<std::string, std::set<std::string>> allowed = {
    {"base", {}},
    {"config", {"base"}},
    {"model", {"base", "config"}},
    {"memory", {"base", "config"}},
    {"storage", {"base", "config"}},
    {"index", {"base", "config"}},
    {"io", {"base", "config"}},
    {"cpu", {"base", "config", "model"}},
    {"gpu", {"base", "config", "model"}},
    {"actors", {"base", "config", "model", "memory", "index", "io"}},
    {"app", {"base", "config", "model", "cpu", "gpu", "memory", "storage", "index", "io", "actors", "include"}},
};

// The folders that are home to a library, by the start of its include path.
const std::map<std::string, std::set<std::string>> homes = {
    {"caf/", {"actors"}},      {"boost/", {"io"}},        {"simdjson", {"io", "model"}},
    {"yaml-cpp/", {"config"}}, {"utf8proc", {"model"}},   {"hnswlib", {"index"}},
    {"cuda", {"gpu"}},         {"cublas", {"gpu"}},       {"CLI/", {"app"}},
    {"doctest", {}},           {"curl/", {"app"}},        {"sqlite3", {"storage"}},
};

} // namespace

TEST_CASE("every folder includes only the folders below it") {
  for (const auto& line : all_includes()) {
    const auto target = first_component(line.target);
    if (line.target.find('/') == std::string::npos || !allowed.count(target) || target == line.folder)
      continue;
    CAPTURE(line.file);
    CAPTURE(line.target);
    CHECK(allowed.at(line.folder).count(target) == 1);
    if (line.folder == "actors" && target == "io")
      CHECK(line.target == "io/edge.hpp");
  }
}

TEST_CASE("every third-party library stays in its home") {
  for (const auto& line : all_includes())
    for (const auto& [prefix, folders] : homes)
      if (line.target.rfind(prefix, 0) == 0) {
        CAPTURE(line.file);
        CAPTURE(line.target);
        CHECK(folders.count(line.folder) == 1);
      }
}

TEST_CASE("the test reads what it means to read") {
  const auto lines = all_includes();
  CHECK(lines.size() > 100);
  std::set<std::string> folders;
  for (const auto& line : lines)
    folders.insert(line.folder);
  for (const char* folder : {"base", "config", "model", "cpu", "memory", "storage", "io", "actors", "app"})
    CHECK(folders.count(folder) == 1);
}
