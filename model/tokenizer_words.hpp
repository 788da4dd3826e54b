// Finds the normal token that has exactly given bytes. Open addressing; 16 bytes a slot, so that a short word costs one cache
// line.
//
// Fixed after building but for one bit of memory a token: whether BPE over its bytes gives the token itself. That is learned
// on first use, by whichever thread comes first; all threads learn the same.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/ids.hpp"

namespace troupe {

class word_table {
public:
  enum class whole : std::uint32_t { unknown = 0, yes = 1, no = 2 };

  // Takes the ids of `words`, whose bytes are not empty. `bytes_of`, indexed by id, must outlive the table.
  word_table(const std::vector<std::string_view>& bytes_of, const std::vector<token_id>& words);

  struct slot {
    std::uint64_t key = 0;    // the bytes themselves up to 8, else their hash
    std::uint32_t length = 0; // 0: empty slot
    std::atomic<std::uint32_t> id_and_whole{0};

    token_id id() const noexcept { return static_cast<token_id>(id_and_whole.load(std::memory_order_relaxed) >> 2); }
    whole state() const noexcept { return static_cast<whole>(id_and_whole.load(std::memory_order_relaxed) & 3u); }
    void learn(bool is_whole) noexcept {
      id_and_whole.fetch_or(static_cast<std::uint32_t>(is_whole ? whole::yes : whole::no), std::memory_order_relaxed);
    }
  };

  // The first word, in the order given, whose bytes another word before it has; -1 where all differ.
  token_id duplicate() const noexcept { return duplicate_; }

  // nullptr where no normal token has these bytes. The slot is shared; only learn() changes it.
  slot* find(const char* bytes, std::size_t length) const noexcept;
  token_id id_of(std::string_view bytes) const noexcept {
    const auto* s = find(bytes.data(), bytes.size());
    return s == nullptr ? -1 : s->id();
  }

private:
  const std::vector<std::string_view>& bytes_of_;
  std::unique_ptr<slot[]> slots_;
  std::uint64_t mask_ = 0;
  std::size_t longest_ = 0;
  token_id duplicate_ = -1;
};

} // namespace troupe
