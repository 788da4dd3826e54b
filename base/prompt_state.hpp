// What a backend keeps of a prompt's end, so that the next token can be chosen again without computing the prompt: opaque to
// all but the backend that made it. Immutable and shared; any thread.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

namespace troupe {

struct prompt_state {
  std::vector<std::byte> bytes;
};

using prompt_state_ptr = std::shared_ptr<const prompt_state>;

} // namespace troupe
