// The memory of the KV pages: reserved at once, touched when first written.
//
// A page holds limits::page_tokens tokens of every layer, [layer][key, value][kv head][token][dim]. The block [token][dim] of one
// head, with its scales, is laid out as kv_layout.hpp says; keys and values may be of different types. Which page holds what is
// the caller's business, and so is that no two threads write one row. Pages are not cleared: whoever reads stays within what was
// written.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "cpu/kv_layout.hpp"
#include "model/hyperparameters.hpp"

namespace troupe::cpu {

class kv_store {
public:
  // errc::no_memory where the address space refuses, errc::unsupported where a type does not fit the model's heads.
  static result<kv_store> create(const hyperparameters& shape, kv_types types, std::uint32_t pages);
  kv_store(kv_store&& other) noexcept;
  kv_store& operator=(kv_store&&) = delete;
  ~kv_store();

  std::uint32_t pages() const noexcept { return pages_; }
  kv_types types() const noexcept { return types_; }
  std::size_t page_bytes() const noexcept { return page_bytes_; }

  // A head's block of page 0; page p's is p * page_bytes() further.
  std::byte* keys(int layer, int head) const noexcept {
    return layer_of(layer) + static_cast<std::size_t>(head) * key_block_bytes_;
  }
  std::byte* values(int layer, int head) const noexcept {
    return layer_of(layer) + kv_heads_ * key_block_bytes_ + static_cast<std::size_t>(head) * value_block_bytes_;
  }

  // All of a page. Precondition of these: pages of this store.
  std::byte* page(page_id page) const noexcept { return base_ + page * page_bytes_; }
  void copy(page_id from, page_id to) noexcept;

private:
  kv_store() = default;
  std::byte* layer_of(int layer) const noexcept {
    return base_ + static_cast<std::size_t>(layer) * kv_heads_ * (key_block_bytes_ + value_block_bytes_);
  }

  std::byte* base_ = nullptr;
  std::uint32_t pages_ = 0;
  kv_types types_;
  std::size_t kv_heads_ = 0;
  std::size_t key_block_bytes_ = 0; // all tokens of one head
  std::size_t value_block_bytes_ = 0;
  std::size_t page_bytes_ = 0;
};

} // namespace troupe::cpu
