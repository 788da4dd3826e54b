#include "cpu/kv_store.hpp"

#include <cstring>
#include <limits>
#include <sys/mman.h>
#include <utility>

#include "config/limits.hpp"
#include "cpu/vector_kernels.hpp"

namespace troupe::cpu {

result<kv_store> kv_store::create(const hyperparameters& shape, std::uint32_t pages) {
  kv_store s;
  s.pages_ = pages;
  s.kv_heads_ = static_cast<std::size_t>(shape.kv_heads);
  s.row_halves_ = static_cast<std::size_t>(padded(shape.head_dim));
  s.block_halves_ = limits::page_tokens * s.row_halves_;
  s.page_halves_ = static_cast<std::size_t>(shape.layers) * 2 * s.kv_heads_ * s.block_halves_;
  if (pages == 0 || s.page_bytes() == 0)
    return fail(errc::invalid_argument, "the KV pool has no pages");
  if (pages > std::numeric_limits<std::size_t>::max() / s.page_bytes())
    return fail(errc::no_memory, "the KV pool's size exceeds the address space");
  const std::size_t bytes = pages * s.page_bytes();
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return fail(errc::no_memory, "cannot reserve " + std::to_string(bytes >> 20) + " MiB for the KV pool");
  s.base_ = static_cast<std::uint16_t*>(memory);
  constexpr std::size_t huge = 2u << 20;
  if (s.page_bytes() >= huge / 4) // small pages would be made resident many at a time
    madvise(memory, bytes, MADV_HUGEPAGE);
  return s;
}

kv_store::kv_store(kv_store&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)), pages_(other.pages_), kv_heads_(other.kv_heads_),
      row_halves_(other.row_halves_), block_halves_(other.block_halves_), page_halves_(other.page_halves_) {}

kv_store::~kv_store() {
  if (base_)
    munmap(base_, pages_ * page_bytes());
}

void kv_store::copy(page_id from, page_id to) noexcept {
  std::memmove(base_ + to * page_halves_, base_ + from * page_halves_, page_bytes());
}

} // namespace troupe::cpu
