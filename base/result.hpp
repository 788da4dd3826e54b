// result<T>: a value or an error. Everything that reads outside input returns one; nothing of ours throws for bad input.
#pragma once
#include <string>
#include <utility>
#include <variant>

#include "base/check.hpp"
#include "base/errc.hpp"

namespace troupe {

// What went wrong, in one clear line that a user can act on.
struct error {
  errc code = errc::internal;
  std::string message;
};

template <class T>
class [[nodiscard]] result {
public:
  result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  result(error e) : state_(std::in_place_index<1>, std::move(e)) {}

  explicit operator bool() const noexcept { return state_.index() == 0; }
  bool has_value() const noexcept { return state_.index() == 0; }

  // Precondition: has_value().
  T& value() & { TROUPE_CHECK(has_value()); return *std::get_if<0>(&state_); }
  const T& value() const& { TROUPE_CHECK(has_value()); return *std::get_if<0>(&state_); }
  T&& value() && { TROUPE_CHECK(has_value()); return std::move(*std::get_if<0>(&state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // Precondition: !has_value().
  const error& fault() const { TROUPE_CHECK(!has_value()); return *std::get_if<1>(&state_); }

private:
  std::variant<T, error> state_;
};

template <>
class [[nodiscard]] result<void> {
public:
  result() = default;
  result(error e) : fault_(std::move(e)), failed_(true) {}
  explicit operator bool() const noexcept { return !failed_; }
  bool has_value() const noexcept { return !failed_; }
  const error& fault() const { TROUPE_CHECK(failed_); return fault_; }

private:
  error fault_;
  bool failed_ = false;
};

// `return fail(errc::model_format, "...")` from any function that returns a result.
inline error fail(errc code, std::string message) { return {code, std::move(message)}; }

} // namespace troupe
