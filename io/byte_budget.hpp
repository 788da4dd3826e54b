// How many bytes the edge holds for all connections together: one budget for requests, what arrives and what is being answered,
// and one for answers that their clients have not taken yet.
//
// Promises: the shares' sum never exceeds the limit; a share gives back what it holds when it goes. Small holdings are not
// counted, where the limit on connections bounds them. Any thread; a share belongs to one thread at a time.
#pragma once
#include <atomic>
#include <cstddef>

namespace troupe {

class byte_budget {
public:
  // Of a share's holding, up to uncounted_bytes are free.
  byte_budget(std::size_t bytes_max, std::size_t uncounted_bytes) : bytes_max_(bytes_max), uncounted_bytes_(uncounted_bytes) {}
  std::size_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

private:
  friend class byte_share;
  bool try_take(std::size_t bytes) noexcept {
    std::size_t now = bytes_.load(std::memory_order_relaxed);
    while (bytes <= bytes_max_ - now)
      if (bytes_.compare_exchange_weak(now, now + bytes, std::memory_order_relaxed))
        return true;
    return false;
  }
  void give_back(std::size_t bytes) noexcept { bytes_.fetch_sub(bytes, std::memory_order_relaxed); }

  const std::size_t bytes_max_;
  const std::size_t uncounted_bytes_;
  std::atomic<std::size_t> bytes_{0};
};

class byte_share {
public:
  explicit byte_share(byte_budget& budget) : budget_(budget) {}
  byte_share(const byte_share&) = delete;
  byte_share& operator=(const byte_share&) = delete;
  ~byte_share() { budget_.give_back(held_); }

  // The owner holds `bytes` now. False where that would exceed the limit: the share is as before.
  bool resize(std::size_t bytes) noexcept {
    const std::size_t counted = bytes > budget_.uncounted_bytes_ ? bytes : 0;
    if (counted > held_ && !budget_.try_take(counted - held_))
      return false;
    if (counted < held_)
      budget_.give_back(held_ - counted);
    held_ = counted;
    return true;
  }

private:
  byte_budget& budget_;
  std::size_t held_ = 0;
};

} // namespace troupe
