#include "memory/prefix_hash.hpp"

#include "base/random.hpp"

namespace troupe {

prefix_hash hash_salt(std::uint64_t salt) { return {mix64(salt), mix64(~salt)}; }

// Two independent 64-bit chains: a false candidate is then too rare to cost anything.
prefix_hash hash_tokens(prefix_hash before, std::span<const token_id> tokens) {
  prefix_hash h{before.a ^ 0x2545f4914f6cdd1dull, before.b ^ 0x9fb21c651e98df25ull};
  for (const token_id token : tokens) {
    h.a = mix64(h.a ^ static_cast<std::uint32_t>(token));
    h.b = mix64(h.b + 0xd6e8feb86659fd93ull * (static_cast<std::uint32_t>(token) + 1ull));
  }
  return h;
}

prefix_hash hash_block(prefix_hash before, page_block block) { return hash_tokens(before, block); }

} // namespace troupe
