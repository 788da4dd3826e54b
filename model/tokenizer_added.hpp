// Finds added tokens (control and user-defined) in text: at each place the longest that stands there, leftmost first, as
// Hugging Face does for tokens with normalized=false. Immutable; any thread.
#pragma once
#include <array>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "model/tokenizer.hpp"

namespace troupe {

class added_tokens {
public:
  // False, and nothing changes, where `text` is empty or known already.
  bool add(std::string text, token_id id);
  void seal(); // call once, after the last add()

  token_id id_of(std::string_view text) const noexcept; // -1: none

  tokenizer::added_match find(std::string_view text, std::size_t from) const noexcept;

private:
  struct entry {
    std::string text;
    token_id id;
  };
  std::vector<entry> entries_;                                    // by first byte, then longest first
  std::array<std::pair<std::size_t, std::size_t>, 256> ranges_{}; // entries_ that begin with this byte
  std::map<std::string, token_id, std::less<>> ids_;              // bounded by limits::vocabulary_max
};

} // namespace troupe
