#include "memory/tier_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/check.hpp"
#include "base/random.hpp"
#include "config/limits.hpp"

namespace troupe {

namespace {

constexpr std::size_t block_bytes = 4096;
constexpr std::size_t slot_header_bytes = 64;
constexpr std::array<char, 8> magic{'T', 'R', 'O', 'U', 'P', 'E', 'K', 'V'};
constexpr std::uint64_t key_seed = 0x7469657266696c65;

struct file_header {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t slots;
  std::uint64_t page_bytes;
  std::uint32_t identity_bytes;
  std::uint32_t unused;
};
using header_block = std::array<char, block_bytes>; // file_header, identity, zeros, checksum at the end
static_assert(sizeof(file_header) + limits::tier_identity_bytes_max + sizeof(hash_value) <= block_bytes);

struct slot_header {
  hash_value checksum;
  prefix_hash name;
  std::uint64_t slot;
  std::array<std::uint64_t, 3> unused;
};
static_assert(sizeof(slot_header) == slot_header_bytes);

hash_key file_key() {
  return hash_key([n = std::uint64_t{0}]() mutable { return random_at(key_seed, ++n); });
}

hash_value header_checksum(const header_block& block) {
  const auto key = file_key();
  keyed_hasher hasher(key);
  hasher.add(std::string_view(block.data(), block.size() - sizeof(hash_value)));
  return hasher.value();
}

error refused(const std::string& what) {
  return fail(errc::io_failed, what + ": " + std::strerror(errno));
}

result<void> check_shape(const tier_file_shape& shape) {
  if (shape.slots == 0 || shape.page_bytes == 0 || shape.identity.size() > limits::tier_identity_bytes_max)
    return fail(errc::invalid_argument, "a tier file needs slots, a page's size and an identity of at most " +
                                            std::to_string(limits::tier_identity_bytes_max) + " bytes");
  return {};
}

// All of it, or what went wrong; an end of the file within is a short read.
template <class Call>
bool transfer(std::span<iovec> parts, std::uint64_t at, Call call) {
  while (!parts.empty()) {
    const auto n = call(parts.data(), static_cast<int>(parts.size()), static_cast<off_t>(at));
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0) {
      errno = n == 0 ? EIO : errno;
      return false;
    }
    at += static_cast<std::uint64_t>(n);
    auto left = static_cast<std::size_t>(n);
    while (!parts.empty() && left >= parts.front().iov_len) {
      left -= parts.front().iov_len;
      parts = parts.subspan(1);
    }
    if (left > 0) {
      parts.front().iov_base = static_cast<char*>(parts.front().iov_base) + left;
      parts.front().iov_len -= left;
    }
  }
  return true;
}

bool write_all(int file, std::span<iovec> parts, std::uint64_t at) {
  return transfer(parts, at, [file](const iovec* p, int n, off_t where) { return pwritev(file, p, n, where); });
}

bool read_all(int file, std::span<iovec> parts, std::uint64_t at) {
  return transfer(parts, at, [file](const iovec* p, int n, off_t where) { return preadv(file, p, n, where); });
}

} // namespace

tier_file::tier_file(int descriptor, tier_file_shape shape)
    : descriptor_(descriptor), shape_(std::move(shape)), slot_bytes_(slot_bytes(shape_.page_bytes)), key_(file_key()) {}

std::uint64_t tier_file::slot_bytes(std::size_t page_bytes) noexcept {
  return (slot_header_bytes + page_bytes + block_bytes - 1) / block_bytes * block_bytes;
}

tier_file::tier_file(tier_file&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), shape_(std::move(other.shape_)), slot_bytes_(other.slot_bytes_),
      key_(other.key_) {}

tier_file::~tier_file() {
  if (descriptor_ >= 0)
    close(descriptor_);
}

result<tier_file> tier_file::create(const std::filesystem::path& folder, tier_file_shape shape) {
  if (auto fits = check_shape(shape); !fits)
    return fits.fault();
  std::string path = (folder / "troupe-kv-XXXXXX").string();
  const int descriptor = mkostemp(path.data(), O_CLOEXEC); // readable by this user alone
  if (descriptor < 0)
    return refused("cannot create the KV tier's file in " + folder.string());
  unlink(path.c_str());
  tier_file file(descriptor, std::move(shape));
  if (auto written = file.write_header(); !written)
    return written.fault();
  return file;
}

result<tier_file> tier_file::create_named(const std::filesystem::path& path, tier_file_shape shape) {
  if (auto fits = check_shape(shape); !fits)
    return fits.fault();
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (descriptor < 0)
    return refused("cannot create the KV tier's file " + path.string());
  tier_file file(descriptor, std::move(shape));
  if (auto written = file.write_header(); !written)
    return written.fault();
  return file;
}

result<tier_file> tier_file::open_named(const std::filesystem::path& path, tier_file_shape shape) {
  if (auto fits = check_shape(shape); !fits)
    return fits.fault();
  const int descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0 && errno == ENOENT)
    return fail(errc::not_found, "there is no KV tier's file " + path.string());
  if (descriptor < 0)
    return refused("cannot open the KV tier's file " + path.string());
  tier_file file(descriptor, std::move(shape));
  if (auto good = file.check_header(); !good)
    return fail(good.fault().code, path.string() + " " + good.fault().message);
  return file;
}

result<void> tier_file::write_header() {
  header_block block{};
  const file_header header{magic, version, shape_.slots, shape_.page_bytes, static_cast<std::uint32_t>(shape_.identity.size()),
                           0};
  std::memcpy(block.data(), &header, sizeof header);
  std::memcpy(block.data() + sizeof header, shape_.identity.data(), shape_.identity.size());
  const auto sum = header_checksum(block);
  std::memcpy(block.data() + block.size() - sizeof sum, &sum, sizeof sum);
  std::array parts{iovec{block.data(), block.size()}};
  if (!write_all(descriptor_, parts, 0))
    return refused("cannot write the KV tier's file");
  return {};
}

result<void> tier_file::check_header() {
  header_block block{};
  std::array parts{iovec{block.data(), block.size()}};
  if (!read_all(descriptor_, parts, 0))
    return fail(errc::unsupported, "has no whole header");
  file_header header{};
  hash_value sum;
  std::memcpy(&header, block.data(), sizeof header);
  std::memcpy(&sum, block.data() + block.size() - sizeof sum, sizeof sum);
  if (header.magic != magic)
    return fail(errc::unsupported, "is no file of a KV tier");
  if (header.version != version)
    return fail(errc::unsupported, "is of version " + std::to_string(header.version) + ", not " + std::to_string(version));
  if (!(sum == header_checksum(block)) || header.identity_bytes > limits::tier_identity_bytes_max)
    return fail(errc::unsupported, "has a damaged header");
  const std::string_view identity(block.data() + sizeof header, header.identity_bytes);
  if (identity != shape_.identity)
    return fail(errc::unsupported, "holds pages of another model or backend");
  if (header.slots != shape_.slots || header.page_bytes != shape_.page_bytes)
    return fail(errc::unsupported, "has another size");
  return {};
}

hash_value tier_file::checksum(std::uint32_t slot, const prefix_hash& name, std::span<const std::byte> page) const {
  keyed_hasher hasher(key_);
  hasher.add(slot);
  hasher.add(std::string_view(reinterpret_cast<const char*>(&name), sizeof name));
  hasher.add(std::string_view(reinterpret_cast<const char*>(page.data()), page.size()));
  return hasher.value();
}

std::uint64_t tier_file::place(std::uint32_t slot) const noexcept {
  return block_bytes + slot * slot_bytes_;
}

result<void> tier_file::write(std::uint32_t slot, const prefix_hash& name, std::span<const std::byte> page) {
  TROUPE_CHECK(slot < shape_.slots && page.size() == shape_.page_bytes);
  slot_header header{checksum(slot, name, page), name, slot, {}};
  std::array parts{iovec{&header, sizeof header}, iovec{const_cast<std::byte*>(page.data()), page.size()}};
  if (!write_all(descriptor_, parts, place(slot)))
    return refused("cannot write to the KV tier's file");
  return {};
}

move_end tier_file::read(std::uint32_t slot, const prefix_hash& name, std::span<std::byte> page) {
  TROUPE_CHECK(slot < shape_.slots && page.size() == shape_.page_bytes);
  slot_header header{};
  std::array parts{iovec{&header, sizeof header}, iovec{page.data(), page.size()}};
  if (!read_all(descriptor_, parts, place(slot)))
    return move_end::failed;
  const bool same = header.slot == slot && header.name == name && header.checksum == checksum(slot, name, page);
  return same ? move_end::done : move_end::damaged;
}

result<void> tier_file::sync() {
  if (fdatasync(descriptor_) != 0)
    return refused("the KV tier's file does not reach the disk");
  return {};
}

} // namespace troupe
