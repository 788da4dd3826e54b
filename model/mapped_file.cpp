#include "model/mapped_file.hpp"

#include <cerrno>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/limits.hpp"

namespace troupe {

namespace {

struct descriptor {
  int number = -1;
  ~descriptor() {
    if (number >= 0)
      ::close(number);
  }
};

error system_fault(const std::filesystem::path& path, const char* what) {
  const int code = errno;
  return fail(code == ENOENT || code == ENOTDIR ? errc::not_found : errc::io_failed,
              path.string() + ": " + what + ": " + std::generic_category().message(code));
}

} // namespace

result<std::shared_ptr<const mapped_file>> mapped_file::open(const std::filesystem::path& path) {
  // O_NONBLOCK: a named pipe must not hold us; it is refused below.
  descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.number < 0)
    return system_fault(path, "cannot open");
  struct stat status {};
  if (::fstat(file.number, &status) != 0)
    return system_fault(path, "cannot examine");
  if (!S_ISREG(status.st_mode))
    return fail(errc::model_format, path.string() + ": not a regular file");
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size == 0)
    return fail(errc::model_format, path.string() + ": the file is empty");
  if (size > limits::model_file_bytes_max)
    return fail(errc::model_format, path.string() + ": " + std::to_string(size) + " bytes are more than a model file may have");
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number, 0);
  if (address == MAP_FAILED)
    return system_fault(path, "cannot map");
  const std::span<const std::byte> bytes{static_cast<const std::byte*>(address), size};
  return std::shared_ptr<const mapped_file>(new mapped_file(bytes));
}

mapped_file::~mapped_file() {
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void drop_resident(std::span<const std::byte> mapped) noexcept {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<std::uintptr_t>(mapped.data());
  const auto begin = (address + page - 1) / page * page, end = (address + mapped.size()) / page * page;
  if (begin < end)
    ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED); // failing, they stay
}

} // namespace troupe
