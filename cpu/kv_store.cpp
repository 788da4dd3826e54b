#include "cpu/kv_store.hpp"

#include <cstring>
#include <limits>
#include <string>
#include <sys/mman.h>
#include <utility>

#include "config/limits.hpp"

namespace troupe::cpu {

result<kv_store> kv_store::create(const hyperparameters& shape, kv_types types, std::uint32_t pages) {
  for (const auto& [setting, type] : {std::pair{"memory.kv_keys", types.keys}, {"memory.kv_values", types.values}})
    if (!kv_type_fits(type, shape.head_dim))
      return fail(errc::unsupported, std::string(setting) + ": " + std::string(name_of(type)) + " needs heads of a multiple of " +
                                         std::to_string(int4_group) + " numbers, and this model's have " +
                                         std::to_string(shape.head_dim));
  kv_store s;
  s.pages_ = pages;
  s.types_ = types;
  s.kv_heads_ = static_cast<std::size_t>(shape.kv_heads);
  s.key_block_bytes_ = kv_block_bytes(types.keys, shape.head_dim);
  s.value_block_bytes_ = kv_block_bytes(types.values, shape.head_dim);
  s.page_bytes_ = static_cast<std::size_t>(shape.layers) * s.kv_heads_ * (s.key_block_bytes_ + s.value_block_bytes_);
  if (pages == 0 || s.page_bytes() == 0)
    return fail(errc::invalid_argument, "the KV pool has no pages");
  if (pages > std::numeric_limits<std::size_t>::max() / s.page_bytes())
    return fail(errc::no_memory, "the KV pool's size exceeds the address space");
  const std::size_t bytes = pages * s.page_bytes();
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return fail(errc::no_memory, "cannot reserve " + std::to_string(bytes >> 20) + " MiB for the KV pool");
  s.base_ = static_cast<std::byte*>(memory);
  constexpr std::size_t huge = 2u << 20;
  if (s.page_bytes() >= huge / 4) // small pages would be made resident many at a time
    madvise(memory, bytes, MADV_HUGEPAGE);
  return s;
}

kv_store::kv_store(kv_store&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)), pages_(other.pages_), types_(other.types_), kv_heads_(other.kv_heads_),
      key_block_bytes_(other.key_block_bytes_), value_block_bytes_(other.value_block_bytes_), page_bytes_(other.page_bytes_) {}

kv_store::~kv_store() {
  if (base_)
    munmap(base_, pages_ * page_bytes());
}

void kv_store::copy(page_id from, page_id to) noexcept {
  std::memmove(base_ + to * page_bytes_, base_ + from * page_bytes_, page_bytes_);
}

} // namespace troupe::cpu
