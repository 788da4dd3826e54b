// A request's sampling over the model's defaults, checked. Pure functions.
#pragma once
#include <cstdint>

#include "actors/support/runtime_context.hpp"

namespace troupe {

// errc::invalid_argument names the field and its range. `drawn`: the seed where the request has none.
result<sampling_params> choose_sampling(const sampling_request& request, const sampling_params& defaults, int vocabulary,
                                        std::uint64_t drawn);

} // namespace troupe
