// What a worker makes of a request: the model's input, or why there is none.
#pragma once
#include <optional>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"

namespace troupe {

struct prepared_prompt {
  std::optional<error> fault;   // then the rest is empty
  std::vector<token_id> tokens; // at least 1
  bool thinking_open = false;   // the answer starts inside a think block
};

} // namespace troupe
