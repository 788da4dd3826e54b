// Owns where copies of pages lie below the device: a buffer in the host's memory and a file on disk, either of which may be
// missing. It outlives the transfer stream that moves pages through it.
// Promises: a page is copied down to each slot that was asked for, or the answer says to which; a page read is what was stored
// under its name, or the answer says that it is not; nothing is thrown for what the operating system refuses.
// Limits: its slots. Its buffer's address space is reserved at once and touched when first written. One thread at a time.
#pragma once
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "memory/page_moves.hpp"
#include "memory/tier_file.hpp"

namespace troupe {

struct tier_store_options {
  std::size_t page_bytes = 0;
  by_level<std::uint32_t> slots{}; // 0: without that tier
  std::filesystem::path folder;    // of the file
  std::string identity;
};

class tier_store {
public:
  static result<std::unique_ptr<tier_store>> create(const tier_store_options& options);
  // With a file that is there already; its slots are as many as the options say.
  static result<std::unique_ptr<tier_store>> create(const tier_store_options& options, tier_file file);
  tier_store(const tier_store&) = delete;
  tier_store& operator=(const tier_store&) = delete;
  ~tier_store();

  std::size_t page_bytes() const noexcept { return page_bytes_; }
  // `page` is what lies in the move's page, or what will: copied down from, or up into.
  moved_page store(const page_move& move, std::span<const std::byte> page);
  moved_page load(const page_move& move, std::span<std::byte> page);
  const std::string& last_fault() const noexcept { return last_fault_; } // of the operating system

private:
  tier_store(const tier_store_options& options, std::byte* memory, std::optional<tier_file> file);
  std::span<std::byte> host(std::uint32_t slot) const;

  std::size_t page_bytes_;
  std::uint32_t host_slots_;
  std::byte* memory_; // null: no host tier
  std::optional<tier_file> file_;
  std::vector<prefix_hash> names_; // of what lies in the buffer
  std::string last_fault_;
};

} // namespace troupe
