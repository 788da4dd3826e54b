// Scratch floats on cache-line bounds, not cleared: pages of large buffers are touched when first written.
#pragma once
#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>

namespace troupe::cpu {

class float_buffer {
public:
  float_buffer() = default;
  explicit float_buffer(std::size_t count)
      : data_(static_cast<float*>(::operator new(count * sizeof(float), alignment))), count_(count) {}

  float* data() const noexcept { return data_.get(); }
  std::size_t size() const noexcept { return count_; }
  // Makes all of it resident now.
  void touch() noexcept {
    std::fill_n(data(), count_, 0.0f);
  }
  // Makes room for `count`; what was inside is lost where it grows.
  void require(std::size_t count) {
    if (count > count_)
      *this = float_buffer(count + count / 2);
  }

private:
  static constexpr std::align_val_t alignment{64};
  struct release {
    void operator()(float* p) const noexcept { ::operator delete(p, alignment); }
  };
  std::unique_ptr<float, release> data_;
  std::size_t count_ = 0;
};

} // namespace troupe::cpu
