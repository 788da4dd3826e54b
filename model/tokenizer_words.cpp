#include "model/tokenizer_words.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace troupe {
namespace {

constexpr std::uint64_t odd_1 = 0x9e3779b97f4a7c15ull, odd_2 = 0xd6e8feb86659fd93ull;

std::uint64_t load_8(const char* p) noexcept {
  std::uint64_t x;
  std::memcpy(&x, p, 8);
  return x;
}

std::uint64_t load_4(const char* p) noexcept {
  std::uint32_t x;
  std::memcpy(&x, p, 4);
  return x;
}

// One to eight bytes as a number, without reading outside of them.
std::uint64_t load_short(const char* p, std::size_t n) noexcept {
  if (n >= 4)
    return load_4(p) | (load_4(p + n - 4) << (8 * (n - 4)));
  const auto byte = [p](std::size_t i) { return static_cast<std::uint64_t>(static_cast<unsigned char>(p[i])) << (8 * i); };
  return byte(0) | byte(n / 2) | byte(n - 1);
}

std::uint64_t key_of(const char* p, std::size_t n) noexcept {
  if (n <= 8)
    return load_short(p, n);
  std::uint64_t h = n * odd_1;
  for (std::size_t i = 0; i + 8 <= n; i += 8)
    h = std::rotl((h ^ load_8(p + i)) * odd_2, 29);
  return std::rotl((h ^ load_8(p + n - 8)) * odd_2, 29) * odd_1;
}

std::uint64_t place_of(std::uint64_t key, std::size_t length) noexcept {
  const std::uint64_t h = (key ^ (length * odd_2)) * odd_1;
  return h ^ (h >> 32);
}

} // namespace

word_table::word_table(const std::vector<std::string_view>& bytes_of, const std::vector<token_id>& words)
    : bytes_of_(bytes_of) {
  const std::size_t capacity = std::bit_ceil(std::max<std::size_t>(16, words.size() + words.size() / 2));
  slots_ = std::make_unique<slot[]>(capacity);
  mask_ = capacity - 1;
  for (const token_id id : words) {
    const std::string_view bytes = bytes_of[static_cast<std::size_t>(id)];
    longest_ = std::max(longest_, bytes.size());
    if (find(bytes.data(), bytes.size()) != nullptr) {
      if (duplicate_ < 0)
        duplicate_ = id;
      continue;
    }
    const std::uint64_t key = key_of(bytes.data(), bytes.size());
    std::uint64_t place = place_of(key, bytes.size()) & mask_;
    while (slots_[place].length != 0)
      place = (place + 1) & mask_;
    slots_[place].key = key;
    slots_[place].length = static_cast<std::uint32_t>(bytes.size());
    slots_[place].id_and_whole.store(static_cast<std::uint32_t>(id) << 2, std::memory_order_relaxed);
  }
}

word_table::slot* word_table::find(const char* bytes, std::size_t length) const noexcept {
  if (length == 0 || length > longest_)
    return nullptr;
  const std::uint64_t key = key_of(bytes, length);
  for (std::uint64_t place = place_of(key, length) & mask_;; place = (place + 1) & mask_) {
    slot& s = slots_[place];
    if (s.length == 0)
      return nullptr;
    if (s.key == key && s.length == length &&
        (length <= 8 || std::memcmp(bytes_of_[static_cast<std::size_t>(s.id())].data(), bytes, length) == 0))
      return &s;
  }
}

} // namespace troupe
