// Puts a model, a backend and the actors together; what `serve` and `chat` share. The only place that knows all of them.
#pragma once
#include <memory>

#include "actors/runtime.hpp"
#include "base/log.hpp"
#include "base/result.hpp"
#include "config/settings.hpp"

namespace troupe {

// Opens the model named in the settings (or, for an empty path, models/tiny beside the working folder), packs it for this
// machine and starts the actors. Errors say which file or setting is at fault.
result<std::unique_ptr<runtime>> start_engine(const settings& s, const log_sink& log);

// Log lines on stderr: time, level, text.
log_sink stderr_log(log_level lowest);

} // namespace troupe
