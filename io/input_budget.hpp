// How many bytes of requests the edge holds for all connections together: what arrives, and what is being answered.
//
// Promises: the shares' sum never exceeds the limit; a share gives back what it holds when it goes. Small holdings are not
// counted, since the limit on connections bounds them. Any thread; a share belongs to its connection.
#pragma once
#include <atomic>
#include <cstddef>

namespace troupe {

class input_budget {
public:
  explicit input_budget(std::size_t bytes_max) : bytes_max_(bytes_max) {}
  std::size_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

private:
  friend class input_share;
  bool try_take(std::size_t bytes) noexcept {
    std::size_t now = bytes_.load(std::memory_order_relaxed);
    while (bytes <= bytes_max_ - now)
      if (bytes_.compare_exchange_weak(now, now + bytes, std::memory_order_relaxed))
        return true;
    return false;
  }
  void give_back(std::size_t bytes) noexcept { bytes_.fetch_sub(bytes, std::memory_order_relaxed); }

  const std::size_t bytes_max_;
  std::atomic<std::size_t> bytes_{0};
};

class input_share {
public:
  static constexpr std::size_t uncounted_bytes = 64 * 1024;

  explicit input_share(input_budget& budget) : budget_(budget) {}
  input_share(const input_share&) = delete;
  input_share& operator=(const input_share&) = delete;
  ~input_share() { budget_.give_back(held_); }

  // The owner holds `bytes` now. False where that would exceed the limit: the share is as before.
  bool resize(std::size_t bytes) noexcept {
    const std::size_t counted = bytes > uncounted_bytes ? bytes : 0;
    if (counted > held_ && !budget_.try_take(counted - held_))
      return false;
    if (counted < held_)
      budget_.give_back(held_ - counted);
    held_ = counted;
    return true;
  }

private:
  input_budget& budget_;
  std::size_t held_ = 0;
};

} // namespace troupe
