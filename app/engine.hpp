// Puts a model, a backend and the actors together; what `serve` and `chat` share. The only place that knows all of them.
#pragma once
#include <memory>
#include <optional>

#include "actors/runtime.hpp"
#include "base/log.hpp"
#include "base/record_store.hpp"
#include "base/result.hpp"
#include "config/settings.hpp"
#include "storage/state_folder.hpp"

namespace troupe {

// What outlives the process, with memory.persistence on. The folder is this process's as long as it lives.
struct kept_state {
  state_folder folder;
  std::shared_ptr<record_store> records; // of stored responses
  std::shared_ptr<record_store> pages;   // of KV pages: a file of their own, so that neither takes the other's room
  std::uint64_t secret = 0;
};

// Nothing where persistence is off.
result<std::optional<kept_state>> open_state(const settings& s, const log_sink& log);

// Opens the model named in the settings (or, for an empty path, models/tiny beside the working folder), packs it for this
// machine and starts the actors. `state` may be null. Errors say which file or setting is at fault.
result<std::unique_ptr<runtime>> start_engine(const settings& s, const kept_state* state, const log_sink& log);

// Log lines on stderr: time, level, text.
log_sink stderr_log(log_level lowest);

} // namespace troupe
