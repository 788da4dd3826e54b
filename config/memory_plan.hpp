// How memory.limit is divided: what the program and the model need is measured, the edge and the histories get shares, and the
// rest is the KV pages'. Plain arithmetic; any thread.
//
// Promises: the parts of a plan add up to the limit or less; a higher limit gives nobody less; a limit that is too low is
// refused with the lowest that would do.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/result.hpp"
#include "config/limits.hpp"

namespace troupe {

// Bounds that follow from the limit alone, before the model is known. Without a limit those of limits.hpp.
struct memory_shares {
  std::size_t input_bytes = limits::buffered_input_bytes_max;   // requests that arrive, wait or are answered, all together
  std::size_t input_uncounted_bytes = limits::uncounted_input_bytes; // of one connection
  std::size_t body_bytes_max = limits::body_bytes_max;          // one request
  std::size_t answer_bytes = limits::buffered_answer_bytes_max; // answers that wait for their clients, all together
  std::size_t stored_bytes = limits::stored_responses_bytes_max;
  std::size_t socket_stored_bytes = limits::stored_responses_bytes_max; // by all sockets for themselves
  std::size_t history_bytes = limits::token_history_bytes_max;  // token histories
  int connections_max = limits::connections_max;
};

memory_shares share_memory(std::uint64_t limit);

// What loading the model showed.
struct memory_needs {
  std::uint64_t resident_bytes = 0; // the process with its packed weights and scratch memory
  std::uint64_t peak_bytes = 0;     // while it loaded
  std::uint64_t later_bytes = 0;    // of the model's file, read while it serves
  std::uint64_t kept_bytes = 0;     // what the settings keep besides pages: states of prompts, copies of pages in the host's memory
  std::uint64_t page_bytes = 0;     // one KV page
  std::uint64_t request_bytes = 0;  // what a request needs besides its text and its pages
  std::uint32_t pages_min = 1;      // fewer are of no use
  int requests_max = 1;             // at once, as the settings have it
};

struct memory_plan {
  std::uint32_t pages = 0;
  int requests_max = 0; // at once; at most the needs'
};

// `limit` is not 0. errc::no_memory names the lowest limit that would do.
result<memory_plan> plan_memory(std::uint64_t limit, const memory_needs& needs);

} // namespace troupe
