#include "storage/fingerprint.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <vector>

#include "base/keyed_hash.hpp"
#include "base/random.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t key_seed = 0x66696e6765727072;
constexpr std::size_t chunk_bytes = 1u << 20;

result<void> add_file(const fs::path& path, keyed_hasher& hasher) {
  std::ifstream in(path, std::ios::binary);
  std::vector<char> chunk(chunk_bytes);
  while (in) {
    in.read(chunk.data(), static_cast<std::streamsize>(chunk.size()));
    hasher.add(std::string_view(chunk.data(), static_cast<std::size_t>(in.gcount())));
  }
  if (!in.eof())
    return fail(errc::io_failed, path.string() + ": cannot be read");
  return {};
}

} // namespace

result<std::string> fingerprint_of(const fs::path& path) {
  std::vector<fs::path> files;
  std::error_code ec;
  if (fs::is_directory(path, ec)) {
    for (fs::directory_iterator at(path, ec), end; !ec && at != end; at.increment(ec))
      if (at->is_regular_file(ec))
        files.push_back(at->path());
    std::sort(files.begin(), files.end());
  } else {
    files.push_back(path);
  }
  if (ec)
    return fail(errc::io_failed, path.string() + ": cannot be read: " + ec.message());
  const hash_key key([n = std::uint64_t{0}]() mutable { return random_at(key_seed, n++); });
  keyed_hasher hasher(key);
  for (const auto& file : files) {
    if (files.size() > 1)
      hasher.add(file.filename().string());
    if (const auto added = add_file(file, hasher); !added)
      return added.fault();
  }
  const auto value = hasher.value();
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(value.a),
                static_cast<unsigned long long>(value.b));
  return std::string(text);
}

} // namespace troupe
