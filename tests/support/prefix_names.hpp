// What a fake device keeps in place of keys, values and states: a name of all tokens up to a position, so that what is read
// stale or belongs to others is told from what was meant.
#pragma once
#include <cstdint>
#include <cstring>
#include <memory>

#include "base/ids.hpp"
#include "base/prompt_state.hpp"
#include "base/random.hpp"

namespace troupe::testing {

// The name of the tokens that `before` names and one more.
inline std::uint64_t append(std::uint64_t before, token_id token) {
  return mix64(before ^ (static_cast<std::uint64_t>(token) + 1));
}

inline prompt_state_ptr state_named(std::uint64_t name) {
  auto out = std::make_shared<prompt_state>();
  out->bytes.resize(sizeof name);
  std::memcpy(out->bytes.data(), &name, sizeof name);
  return out;
}

inline std::uint64_t name_of(const prompt_state& state) {
  std::uint64_t name = 0;
  std::memcpy(&name, state.bytes.data(), sizeof name);
  return name;
}

} // namespace troupe::testing
