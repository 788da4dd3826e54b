// Plain values as the bytes of a record and back: numbers of 64 bits, big endian so that keys sort as their numbers do, and
// texts with their length before them.
//
// Promises: a reader never looks beyond its bytes; after the first field that is not there all are empty, and ok() is false.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

class record_writer {
public:
  record_writer& number(std::uint64_t value) {
    for (int shift = 56; shift >= 0; shift -= 8)
      bytes_ += static_cast<char>((value >> shift) & 255);
    return *this;
  }
  record_writer& text(std::string_view value) {
    number(value.size());
    bytes_ += value;
    return *this;
  }
  std::string take() { return std::move(bytes_); }

private:
  std::string bytes_;
};

class record_reader {
public:
  explicit record_reader(std::string_view bytes) : rest_(bytes) {}

  std::uint64_t number() {
    std::uint64_t value = 0;
    for (const char c : take(8))
      value = value << 8 | static_cast<unsigned char>(c);
    return value;
  }
  std::string text() {
    const std::uint64_t size = number();
    return std::string(take(size));
  }
  // A number of items that follow, each of at least `item_bytes`.
  std::uint64_t count(std::uint64_t item_bytes) {
    const std::uint64_t value = number();
    if (ok_ && value > rest_.size() / item_bytes)
      ok_ = false;
    return ok_ ? value : 0;
  }
  // Everything that was asked for was there.
  bool ok() const noexcept { return ok_; }
  // ... and nothing else.
  bool complete() const noexcept { return ok_ && rest_.empty(); }

private:
  std::string_view take(std::uint64_t size) {
    if (!ok_ || size > rest_.size()) {
      ok_ = false;
      return {};
    }
    const auto taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::string_view rest_;
  bool ok_ = true;
};

inline std::string record_key(std::uint64_t number) {
  return record_writer().number(number).take();
}

} // namespace troupe
