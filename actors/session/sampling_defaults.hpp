// What the model's own files recommend; a request's fields override it one by one.
#pragma once
#include <optional>

#include "base/sampling.hpp"

namespace troupe {

struct sampling_defaults {
  sampling_params answer;
  std::optional<sampling_params> thinking; // where the model may think first; absent: as answer
};

} // namespace troupe
