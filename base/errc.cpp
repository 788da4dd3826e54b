#include "base/errc.hpp"

namespace troupe {

std::string_view name_of(errc code) noexcept {
  switch (code) {
    case errc::ok: return "ok";
    case errc::invalid_argument: return "invalid_argument";
    case errc::unsupported: return "unsupported";
    case errc::not_found: return "not_found";
    case errc::model_format: return "model_format";
    case errc::context_full: return "context_full";
    case errc::queue_full: return "queue_full";
    case errc::no_memory: return "no_memory";
    case errc::cancelled: return "cancelled";
    case errc::timeout: return "timeout";
    case errc::unauthorized: return "unauthorized";
    case errc::forbidden: return "forbidden";
    case errc::too_large: return "too_large";
    case errc::shutting_down: return "shutting_down";
    case errc::unavailable: return "unavailable";
    case errc::device_failed: return "device_failed";
    case errc::io_failed: return "io_failed";
    case errc::internal: return "internal";
  }
  return "unknown";
}

} // namespace troupe
