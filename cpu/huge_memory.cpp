#include "cpu/huge_memory.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <new>
#include <utility>

namespace troupe::cpu {
namespace {

constexpr std::size_t small_page = 4096;
constexpr std::size_t huge_page = 2u << 20;

constexpr std::size_t round_up(std::size_t value, std::size_t unit) noexcept {
  return (value + unit - 1) / unit * unit;
}

} // namespace

huge_memory::huge_memory(std::size_t bytes) {
  if (bytes == 0)
    return;
  if (bytes > SIZE_MAX - 2 * huge_page)
    throw std::bad_alloc();
  const std::size_t wanted = round_up(bytes, small_page);
  const std::size_t slack = wanted >= huge_page ? huge_page : 0;
  void* mapping = mmap(nullptr, wanted + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED)
    throw std::bad_alloc();
  auto* begin = static_cast<std::byte*>(mapping);
  if (slack != 0) {
    const auto address = reinterpret_cast<std::uintptr_t>(begin);
    const std::size_t before = round_up(address, huge_page) - address;
    if (before != 0)
      munmap(begin, before);
    if (slack - before != 0)
      munmap(begin + before + wanted, slack - before);
    begin += before;
    madvise(begin, wanted, MADV_HUGEPAGE); // a hint: failing, we have small pages
  }
  data_ = begin;
  size_ = wanted;
}

huge_memory::~huge_memory() {
  if (data_ != nullptr)
    munmap(data_, size_);
}

huge_memory::huge_memory(huge_memory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

huge_memory& huge_memory::operator=(huge_memory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

} // namespace troupe::cpu
