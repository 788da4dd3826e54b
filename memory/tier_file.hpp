// Owns a file of fixed-size slots, each a page with its name and a checksum: the tier below the device and the host's memory.
// Promises: a slot is read only as what was written to it under that name; a torn, altered or foreign one is told (damaged);
// nothing of the file outlives the process unless it is kept by name.
// Limits: the slots it was made for; it takes room on the disk as they are first used, and a full disk fails a write.
// One thread.
//
// Layout, little endian: a header of 4,096 bytes (magic, version, sizes, identity, checksum), then the slots: 64 bytes
// (checksum, name, index), the page, zeros up to a multiple of 4,096. The identity says whose pages these are: the model, the
// page's layout and types, and what computed them, since another backend's pages differ in their last bits.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/keyed_hash.hpp"
#include "base/result.hpp"
#include "memory/page_moves.hpp"

namespace troupe {

struct tier_file_shape {
  std::size_t page_bytes = 0;
  std::uint32_t slots = 0;
  std::string identity; // at most limits::tier_identity_bytes_max
};

class tier_file {
public:
  static constexpr std::uint32_t version = 1;

  static std::uint64_t slot_bytes(std::size_t page_bytes) noexcept; // that a page takes of it

  // A new file without a name in `folder`: it goes with the process.
  static result<tier_file> create(const std::filesystem::path& folder, tier_file_shape shape);
  // A file that stays; one that is there already is replaced.
  static result<tier_file> create_named(const std::filesystem::path& path, tier_file_shape shape);
  // One that an earlier process left: errc::not_found, or errc::unsupported with the reason where it is of another version,
  // shape or identity, or its header is torn.
  static result<tier_file> open_named(const std::filesystem::path& path, tier_file_shape shape);

  tier_file(tier_file&& other) noexcept;
  tier_file& operator=(tier_file&&) = delete;
  ~tier_file();

  const tier_file_shape& shape() const noexcept { return shape_; }
  // Precondition of both: slot < slots, the span is a page. A failed write leaves the slot damaged.
  result<void> write(std::uint32_t slot, const prefix_hash& name, std::span<const std::byte> page);
  move_end read(std::uint32_t slot, const prefix_hash& name, std::span<std::byte> page);
  // What was written so far reaches the disk.
  result<void> sync();

private:
  tier_file(int descriptor, tier_file_shape shape);
  result<void> write_header();
  result<void> check_header();
  hash_value checksum(std::uint32_t slot, const prefix_hash& name, std::span<const std::byte> page) const;
  std::uint64_t place(std::uint32_t slot) const noexcept;

  int descriptor_;
  tier_file_shape shape_;
  std::uint64_t slot_bytes_;
  hash_key key_; // no secret: chance alone damages a slot
};

} // namespace troupe
