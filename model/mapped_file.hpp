// Owns a read-only mapping of one regular file. Promises: bytes() stays valid and unchanged in place for the object's life,
// even if the name is deleted or replaced. Limit: a process that cuts the very same file short while it is mapped makes reads
// fault (SIGBUS); model files are replaced by rename, never rewritten. Shared by any number of threads.
#pragma once
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

#include "base/result.hpp"

namespace troupe {

class mapped_file {
public:
  // errc::not_found, io_failed, or model_format for an empty or absurdly large file.
  static result<std::shared_ptr<const mapped_file>> open(const std::filesystem::path& path);
  ~mapped_file();
  mapped_file(const mapped_file&) = delete;
  mapped_file& operator=(const mapped_file&) = delete;

  std::span<const std::byte> bytes() const noexcept { return bytes_; }

private:
  explicit mapped_file(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> bytes_;
};

// Bytes of such a mapping that nobody reads soon: whole pages inside are taken out of this process's resident memory. They are
// read from the file again when touched.
void drop_resident(std::span<const std::byte> mapped) noexcept;

} // namespace troupe
