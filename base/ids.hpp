// Names of things that cross folders. Numbers are never reused within a process.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>

namespace troupe {

using token_id = std::int32_t; // a row of the vocabulary; negative: none
using page_id = std::uint32_t; // a page of the KV pool, device-wide; each shard owns a contiguous range
inline constexpr page_id no_page = ~page_id{0}; // stands in a table for a page that nobody reads any more

// One run of one request. A request that is resubmitted after a crash keeps its number and raises its generation, so that
// answers to the former run are recognised and dropped.
struct request_id {
  std::uint64_t number = 0;
  std::uint32_t generation = 0;
  friend bool operator==(const request_id&, const request_id&) = default;
};

// Inspectable by CAF without knowing it.
template <class Inspector>
auto inspect(Inspector& f, request_id& x) {
  return f(x.number, x.generation);
}

} // namespace troupe

template <>
struct std::hash<troupe::request_id> {
  std::size_t operator()(const troupe::request_id& id) const noexcept {
    return static_cast<std::size_t>(id.number * 0x9e3779b97f4a7c15ull + id.generation);
  }
};
