// Checks on our own logic, on in release builds too. A failed check throws check_failed: inside an actor that ends the
// actor, which the supervisor restarts; it never ends the process. Outside input is never checked this way (base/result.hpp).
#pragma once
#include <stdexcept>
#include <string>

namespace troupe {

struct check_failed : std::logic_error {
  using std::logic_error::logic_error;
};

[[noreturn]] inline void fail_check(const char* condition, const char* file, int line) {
  throw check_failed(std::string("check failed: ") + condition + " at " + file + ":" + std::to_string(line));
}

} // namespace troupe

#define TROUPE_CHECK(condition) \
  do { \
    if (!(condition)) [[unlikely]] \
      ::troupe::fail_check(#condition, __FILE__, __LINE__); \
  } while (false)
