// The folder that holds what outlives a process, and the right to use it.
//
// Owns a lock on the folder, so that one process at a time uses it; the kernel takes it back however the process ends.
// Promises: the folder and what is made in it is for its owner alone. Fails with io_failed or unavailable and one line that
// names the folder. One thread, at the start.
#pragma once
#include <cstdint>
#include <filesystem>

#include "base/result.hpp"

namespace troupe {

class state_folder {
public:
  // Makes the folder where it is missing. unavailable: another process uses it.
  static result<state_folder> open(const std::filesystem::path& path);
  state_folder(state_folder&& other) noexcept;
  state_folder& operator=(state_folder&&) = delete;
  ~state_folder();

  const std::filesystem::path& path() const noexcept { return path_; }
  // The number that tenants' salts are derived from: drawn once, then kept in the file "secret".
  result<std::uint64_t> secret() const;

private:
  state_folder(std::filesystem::path path, int lock) : path_(std::move(path)), lock_(lock) {}

  std::filesystem::path path_;
  int lock_ = -1;
};

// $XDG_STATE_HOME/troupe, or ~/.local/state/troupe; not_found where neither is set.
result<std::filesystem::path> default_state_folder();

} // namespace troupe
