// The memory of the KV pages: reserved at once, touched when first written.
//
// A page holds limits::page_tokens tokens of every layer as halves, [layer][key, value][kv head][token][dim], where dim is
// head_dim padded to half_row_step and the padding is zero. Which page holds what is the caller's business, and so is that no
// two threads write one row. Pages are not cleared: whoever reads stays within what was written.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "model/hyperparameters.hpp"

namespace troupe::cpu {

class kv_store {
public:
  // errc::no_memory where the address space refuses.
  static result<kv_store> create(const hyperparameters& shape, std::uint32_t pages);
  kv_store(kv_store&& other) noexcept;
  kv_store& operator=(kv_store&&) = delete;
  ~kv_store();

  std::uint32_t pages() const noexcept { return pages_; }
  std::size_t page_bytes() const noexcept { return page_halves_ * sizeof(std::uint16_t); }
  std::size_t page_stride() const noexcept { return page_halves_; }

  // The block [token][dim] of page 0; page p's is p * page_stride() further.
  std::uint16_t* keys(int layer, int head) const noexcept { return base_ + block(layer, 0, head); }
  std::uint16_t* values(int layer, int head) const noexcept { return base_ + block(layer, 1, head); }
  std::size_t row_halves() const noexcept { return row_halves_; }

  // Precondition: both are pages of this store.
  void copy(page_id from, page_id to) noexcept;

private:
  kv_store() = default;
  std::size_t block(int layer, int kind, int head) const noexcept {
    return ((static_cast<std::size_t>(layer) * 2 + static_cast<std::size_t>(kind)) * kv_heads_ +
            static_cast<std::size_t>(head)) *
           block_halves_;
  }

  std::uint16_t* base_ = nullptr;
  std::uint32_t pages_ = 0;
  std::size_t kv_heads_ = 0;
  std::size_t row_halves_ = 0;   // one token of one head
  std::size_t block_halves_ = 0; // all tokens of one head
  std::size_t page_halves_ = 0;
};

} // namespace troupe::cpu
