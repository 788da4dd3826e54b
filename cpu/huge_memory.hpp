// Zeroed memory for weights, on huge pages where the system offers them (2 MiB aligned, MADV_HUGEPAGE).
//
// Owns one anonymous mapping. Pages are touched first by whoever writes them. Throws std::bad_alloc where the system refuses.
#pragma once
#include <cstddef>

namespace troupe::cpu {

class huge_memory {
public:
  huge_memory() = default;
  explicit huge_memory(std::size_t bytes);
  ~huge_memory();
  huge_memory(huge_memory&& other) noexcept;
  huge_memory& operator=(huge_memory&& other) noexcept;

  std::byte* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }

private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

} // namespace troupe::cpu
