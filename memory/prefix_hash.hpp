// How beginnings of prompts are named: a chain of hashes over their tokens, salted by the tenant. Pure functions; any thread.
//
// A hash finds candidates; equality is decided by the tokens themselves.
#pragma once
#include <cstdint>
#include <span>

#include "base/ids.hpp"
#include "config/limits.hpp"

namespace troupe {

struct prefix_hash {
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  friend bool operator==(const prefix_hash&, const prefix_hash&) = default;
};

struct hash_of_prefix_hash {
  std::size_t operator()(const prefix_hash& h) const noexcept { return static_cast<std::size_t>(h.a ^ h.b); }
};

using page_block = std::span<const token_id, static_cast<std::size_t>(limits::page_tokens)>;

prefix_hash hash_salt(std::uint64_t salt);
// The hash of `tokens` behind the tokens that `before` stands for.
prefix_hash hash_tokens(prefix_hash before, std::span<const token_id> tokens);
prefix_hash hash_block(prefix_hash before, page_block block);

} // namespace troupe
