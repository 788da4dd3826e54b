#include "model/hyperparameters.hpp"

namespace troupe {

std::string_view name_of(architecture a) noexcept {
  switch (a) {
    case architecture::qwen3: return "qwen3";
    case architecture::qwen2: return "qwen2";
    case architecture::llama: return "llama";
  }
  return "unknown";
}

} // namespace troupe
