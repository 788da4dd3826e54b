// Reads a GGUF header from front to back, never past its end. The first failure sticks: later takes return zeros, so that a
// caller checks once after a group of fields. One thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "model/weight_types_half.hpp"

namespace troupe {

class gguf_cursor {
public:
  explicit gguf_cursor(std::span<const std::byte> file) : file_(file) {}

  std::uint64_t position() const noexcept { return position_; }
  std::uint64_t left() const noexcept { return file_.size() - position_; }
  bool failed() const noexcept { return failed_; }
  const error& fault() const noexcept { return fault_; }

  // Records "FIELD at byte AT: WHY" unless something failed before.
  void fail_at(std::uint64_t at, std::string_view field, std::string_view why, errc code = errc::model_format) {
    if (failed_)
      return;
    failed_ = true;
    fault_ = troupe::fail(code, std::string(field) + " at byte " + std::to_string(at) + ": " + std::string(why));
  }

  std::span<const std::byte> take_bytes(std::uint64_t count, std::string_view field) {
    if (!failed_ && count > left())
      fail_at(position_, field, "needs " + std::to_string(count) + " bytes, the file has " + std::to_string(left()) + " left");
    if (failed_)
      return {};
    const auto taken = file_.subspan(position_, count);
    position_ += count;
    return taken;
  }

  template <class T>
  T take(std::string_view field) {
    const auto bytes = take_bytes(sizeof(T), field);
    return failed_ ? T{} : load<T>(bytes.data());
  }

  // A u64 length and that many bytes.
  std::string_view take_text(std::string_view field, std::uint64_t length_max) {
    const std::uint64_t at = position_;
    const auto length = take<std::uint64_t>(field);
    if (length > length_max)
      fail_at(at, field, "a length of " + std::to_string(length) + " bytes is over the limit of " + std::to_string(length_max));
    const auto bytes = take_bytes(length, field);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  // What was taken since `start`.
  std::span<const std::byte> since(std::uint64_t start) const noexcept { return file_.subspan(start, position_ - start); }

private:
  std::span<const std::byte> file_;
  std::uint64_t position_ = 0;
  bool failed_ = false;
  error fault_;
};

} // namespace troupe
