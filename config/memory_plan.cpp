#include "config/memory_plan.hpp"

#include <algorithm>
#include <optional>
#include <string>

namespace troupe {
namespace {

// In sixty-fourths of the limit. What is left over is the program's, the model's and the KV pages'.
constexpr std::uint64_t whole = 64;
constexpr std::uint64_t input_part = 4;
constexpr std::uint64_t reading_part = 4; // parsing, rendering and tokenising the largest bodies
constexpr std::uint64_t answer_part = 2;
constexpr std::uint64_t stored_part = 3;
constexpr std::uint64_t socket_stored_part = 2;
constexpr std::uint64_t history_part = 2;
constexpr std::uint64_t connection_part = 2;
constexpr std::uint64_t request_part = 2;
constexpr std::uint64_t spare_part = 2; // what the allocator keeps between what is in use

constexpr std::uint64_t page_upkeep_bytes = 512;      // a page in the pool, in a lease's table, in the prefix tree
constexpr std::uint64_t upkeep_bytes = 8u << 20;      // what grows to a bound of its own: affinity, metrics, mailboxes
constexpr std::uint64_t connection_bytes = 12u << 10; // its state, and its buffers between requests

std::size_t part_of(std::uint64_t limit, std::uint64_t part, std::size_t most) {
  return static_cast<std::size_t>(std::min<std::uint64_t>(limit / whole * part, most));
}

std::uint64_t bytes_of(const memory_shares& shares) {
  return shares.input_bytes + limits::body_working_factor * shares.body_bytes_max + shares.answer_bytes + shares.stored_bytes +
         shares.socket_stored_bytes + shares.history_bytes + static_cast<std::uint64_t>(shares.connections_max) * connection_bytes;
}

std::optional<memory_plan> divide(std::uint64_t limit, const memory_needs& needs) {
  memory_plan plan;
  const auto request_bytes = std::max<std::uint64_t>(needs.request_bytes, 1);
  plan.requests_max = static_cast<int>(
      std::min<std::uint64_t>(limit / whole * request_part / request_bytes, static_cast<std::uint64_t>(needs.requests_max)));
  const std::uint64_t taken = needs.resident_bytes + needs.later_bytes + needs.kept_bytes + upkeep_bytes + limit / whole * spare_part +
                              bytes_of(share_memory(limit)) + static_cast<std::uint64_t>(plan.requests_max) * request_bytes;
  if (limit < std::max(taken, needs.peak_bytes))
    return std::nullopt;
  plan.pages = static_cast<std::uint32_t>(
      std::min<std::uint64_t>((limit - taken) / (needs.page_bytes + page_upkeep_bytes), limits::kv_pages_max));
  if (plan.pages < needs.pages_min || plan.requests_max < 1)
    return std::nullopt;
  return plan;
}

std::uint64_t lowest_limit(const memory_needs& needs) {
  std::uint64_t low = 0, high = std::uint64_t{1} << 20;
  while (high < limits::memory_limit_max && !divide(high, needs))
    high *= 2;
  while (high - low > std::uint64_t{1} << 20) {
    const auto middle = low + (high - low) / 2;
    (divide(middle, needs) ? high : low) = middle;
  }
  return high;
}

std::string mib(std::uint64_t bytes) { return std::to_string((bytes + (1u << 20) - 1) >> 20) + " MiB"; }

} // namespace

memory_shares share_memory(std::uint64_t limit) {
  memory_shares shares;
  if (limit == 0)
    return shares;
  shares.input_bytes = part_of(limit, input_part, shares.input_bytes);
  shares.input_uncounted_bytes = 0;
  shares.body_bytes_max = part_of(limit, reading_part, limits::body_working_factor * shares.body_bytes_max) / limits::body_working_factor;
  shares.answer_bytes = part_of(limit, answer_part, shares.answer_bytes);
  shares.stored_bytes = part_of(limit, stored_part, shares.stored_bytes);
  shares.socket_stored_bytes = part_of(limit, socket_stored_part, shares.socket_stored_bytes);
  shares.history_bytes = part_of(limit, history_part, shares.history_bytes);
  shares.connections_max = static_cast<int>(std::clamp<std::uint64_t>(
      limit / whole * connection_part / connection_bytes, 1, static_cast<std::uint64_t>(shares.connections_max)));
  return shares;
}

result<memory_plan> plan_memory(std::uint64_t limit, const memory_needs& needs) {
  if (const auto plan = divide(limit, needs))
    return *plan;
  return fail(errc::no_memory, "memory.limit: " + mib(limit) + " are too little: this model needs at least " + mib(lowest_limit(needs)) +
                                   ", of which " + mib(needs.resident_bytes + needs.later_bytes) + " for the program and its weights");
}

} // namespace troupe
