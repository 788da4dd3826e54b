// What every actor of the company does first, so that CAF never writes to stdout or stderr and a defect ends one actor with a
// logged reason.
#pragma once
#include <caf/all.hpp>

#include "actors/support/runtime_context.hpp"

namespace troupe {

// The exit reason of an actor whose handler threw; the text is what().
inline caf::error reason_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& e) {
    return caf::make_error(caf::sec::runtime_error, std::string(e.what()));
  } catch (...) {
    return caf::make_error(caf::sec::runtime_error, std::string("not a std::exception"));
  }
}

template <class Self>
void settle_in(Self* self, const context_ptr& context) {
  self->set_default_handler(caf::drop);
  self->set_exception_handler([self, context](std::exception_ptr& thrown) {
    const auto reason = reason_of(thrown);
    log_to(context->log, log_level::error, std::string(self->name()) + " failed: " + self->system().render(reason));
    return reason;
  });
  // An error answer has no meaning in our protocol; the default would end the actor.
  self->set_error_handler([](caf::error&) {});
}

} // namespace troupe
