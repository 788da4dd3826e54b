#include "storage/state_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

namespace troupe {
namespace {

namespace fs = std::filesystem;

error refused(const fs::path& path, std::string_view what) {
  return fail(errc::io_failed, path.string() + ": " + std::string(what) + ": " + std::strerror(errno));
}

// Closes what it holds.
struct descriptor {
  int fd = -1;
  explicit descriptor(int opened) : fd(opened) {}
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  ~descriptor() {
    if (fd >= 0)
      close(fd);
  }
};

result<std::uint64_t> draw_secret(const fs::path& path) {
  std::uint64_t value = 0;
  if (getrandom(&value, sizeof value, 0) != sizeof value)
    return refused(path, "no random number for it");
  // Under another name first: a kill in between leaves no half of a secret.
  const fs::path fresh = path.string() + ".new";
  const descriptor file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (file.fd < 0 || ::write(file.fd, &value, sizeof value) != sizeof value || fsync(file.fd) != 0)
    return refused(fresh, "cannot be written");
  if (std::rename(fresh.c_str(), path.c_str()) != 0)
    return refused(path, "cannot be made");
  return value;
}

} // namespace

result<state_folder> state_folder::open(const fs::path& path) {
  std::error_code ec;
  if (path.has_parent_path())
    fs::create_directories(path.parent_path(), ec);
  if (ec)
    return fail(errc::io_failed, path.string() + ": its parent folder cannot be made: " + ec.message());
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return refused(path, "cannot be made");
  struct stat about {};
  if (stat(path.c_str(), &about) != 0)
    return refused(path, "cannot be looked at");
  if (!S_ISDIR(about.st_mode))
    return fail(errc::io_failed, path.string() + ": is not a folder");
  if (about.st_uid != geteuid() || (about.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return fail(errc::io_failed, path.string() + ": must belong to this user, and others must not write to it");
  const fs::path lock_path = path / "lock";
  descriptor lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (lock.fd < 0)
    return refused(lock_path, "cannot be opened");
  if (flock(lock.fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK)
      return refused(lock_path, "cannot be locked");
    return fail(errc::unavailable,
                path.string() + ": another troupe process uses this state folder; choose another with memory.state_dir");
  }
  return state_folder(path, std::exchange(lock.fd, -1));
}

state_folder::state_folder(state_folder&& other) noexcept
    : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)) {}

state_folder::~state_folder() {
  if (lock_ >= 0)
    close(lock_);
}

result<std::uint64_t> state_folder::secret() const {
  const fs::path path = path_ / "secret";
  const descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.fd < 0)
    return errno == ENOENT ? draw_secret(path) : result<std::uint64_t>(refused(path, "cannot be opened"));
  std::uint64_t value = 0;
  if (read(file.fd, &value, sizeof value) != sizeof value)
    return draw_secret(path); // of a wrong size: what was kept under it is not found, no more
  return value;
}

result<fs::path> default_state_folder() {
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && state[0] == '/') // others are to be ignored, says XDG
    return fs::path(state) / "troupe";
  const char* home = std::getenv("HOME");
  if (home == nullptr || home[0] == '\0')
    return fail(errc::not_found, "memory.state_dir: choose a folder, as neither XDG_STATE_HOME nor HOME is set");
  return fs::path(home) / ".local" / "state" / "troupe";
}

} // namespace troupe
