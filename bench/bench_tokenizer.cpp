// How fast does one thread tokenise?
//
//   bench_tokenizer [TOKENIZER_JSON [TEXT_FILE ...]]
//
// Without files: English (common words), Chinese (common characters and phrases) and code (this repository's own), each until
// half a second has passed; the best pass counts. Prints MiB/s and tokens/s, and the time to build the tokenizer.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "config/limits.hpp"
#include "model/hf_tokenizer.hpp"
#include "model/tokenizer.hpp"

using namespace troupe;

namespace {

const std::filesystem::path source = TROUPE_SOURCE_DIR;
constexpr std::size_t text_bytes = 2u << 20;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Lines of one section of the golden corpus' material.
std::vector<std::string> parts(const std::string& section) {
  std::ifstream file(source / "tests" / "golden" / "tokenizer_corpus_parts.txt");
  std::vector<std::string> lines;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("%% "))
      inside = line == "%% " + section;
    else if (inside)
      lines.push_back(line);
  }
  return lines;
}

// Words in falling frequency: the i-th about 1 / (i + 1) as often as the first.
std::string mixed(const std::vector<std::string>& words, const std::string& between, int sentence) {
  std::string out;
  for (std::uint64_t i = 0; out.size() < text_bytes && !words.empty(); ++i) {
    const double share = uniform_at(1, i);
    const auto rank = static_cast<std::size_t>(std::pow(static_cast<double>(words.size()), share)) - 1;
    out += words[std::min(rank, words.size() - 1)];
    out += random_at(2, i) % static_cast<std::uint64_t>(sentence) == 0 ? (between.empty() ? "。\n" : ".\n") : between;
  }
  return out;
}

std::string own_code() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(source / "model"))
    if (entry.path().extension() == ".cpp" || entry.path().extension() == ".hpp")
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::string out;
  for (const auto& file : files)
    out += read_file(file);
  return out;
}

void measure(const tokenizer& t, const std::string& name, const std::string& text) {
  std::vector<token_id> ids;
  double best = 1e9;
  const auto begin = std::chrono::steady_clock::now();
  do {
    ids.clear();
    const auto start = std::chrono::steady_clock::now();
    t.encode(text, ids);
    best = std::min(best, seconds_since(start));
  } while (seconds_since(begin) < 0.5);
  std::printf("%-24s %8.2f KiB %8.1f MiB/s %7.2f M tokens/s %5.2f bytes/token\n", name.c_str(),
              static_cast<double>(text.size()) / 1024, static_cast<double>(text.size()) / best / (1 << 20),
              static_cast<double>(ids.size()) / best / 1e6,
              static_cast<double>(text.size()) / static_cast<double>(std::max<std::size_t>(1, ids.size())));
}

} // namespace

int main(int argc, char** argv) {
  const std::filesystem::path file =
      argc > 1 ? argv[1] : source.parent_path() / "shared" / "data" / "qwen3-tokenizer" / "tokenizer.json";
  const auto document = json_document::read(file);
  if (!document) {
    std::fprintf(stderr, "%s\n", document.fault().message.c_str());
    return 1;
  }
  auto data = hf_tokenizer(*document, limits::vocabulary_max);
  if (!data) {
    std::fprintf(stderr, "%s\n", data.fault().message.c_str());
    return 1;
  }
  const auto start = std::chrono::steady_clock::now();
  const auto t = tokenizer::build(std::move(data).value());
  if (!t) {
    std::fprintf(stderr, "%s\n", t.fault().message.c_str());
    return 1;
  }
  std::printf("built in %.0f ms: %d tokens\n", 1e3 * seconds_since(start), t.value()->size());
  if (argc > 2) {
    for (int i = 2; i < argc; ++i)
      measure(*t.value(), argv[i], read_file(argv[i]));
    return 0;
  }
  measure(*t.value(), "English", mixed(parts("english"), " ", 12));
  measure(*t.value(), "Chinese", mixed(parts("chinese"), "", 20));
  measure(*t.value(), "code", own_code());
  return 0;
}
