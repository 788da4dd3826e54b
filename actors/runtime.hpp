// The company of actors as a value: started, used through edge_port, drained, destroyed. Knows CAF only inside.
//
// Owns: the actor system, the backend, every thread behind the edge. Promises: start() answers with a running company or one
// clear error; every accepted request's sink gets exactly one end, at the latest when drain() or the destructor returns; both
// return within their deadline (limits::shutdown_deadline for the destructor): what hangs then is left behind with a logged
// line, never waited for. Prints nothing, installs no signal handlers, reads no arguments.
// Limits: as named in runtime_parts. Threads: port() from any; the rest from the owner's.
#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/actor_kind.hpp"
#include "actors/session/sampling_defaults.hpp"
#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/record_store.hpp"
#include "base/result.hpp"
#include "io/edge.hpp"
#include "memory/prefix_policy.hpp"
#include "model/backend.hpp"
#include "model/chat_template.hpp"
#include "model/tokenizer.hpp"

namespace troupe {

// What lies below the device; with no bytes there is nothing.
struct tier_parts {
  std::uint64_t host_bytes = 0;
  std::uint64_t disk_bytes = 0;
  std::filesystem::path folder = "/var/tmp"; // of the file
  std::shared_ptr<record_store> records;     // of its pages, for the next process; null: the file has no name and ends with this one
  std::string identity;                      // whose pages these are, as of tier_file
  std::chrono::seconds time_to_live{0};      // of what nobody uses; 0: no end
  int prefetch_ahead = 2;                    // conversations; 0: nothing is prefetched. At most limits::prefetch_ahead_max
};

struct runtime_parts {
  std::unique_ptr<backend> device;
  std::shared_ptr<const tokenizer> tokens;
  std::optional<chat_template> chat; // absent: raw prompts only
  served_model model;                // context_tokens: of prompt and answer together
  sampling_defaults sampling;
  std::vector<token_id> end_tokens; // the answer ends with any of them
  int kv_shards = 2;                // 1 .. limits::kv_shards_max; at most the pages
  std::uint32_t kv_pages = 0;       // of the device's, those to use; 0: all
  prefix_policy prefix;  // prompt_states within limits::prompt_states_max
  tier_parts tiers;
  std::size_t history_bytes = std::size_t{64} << 20; // of token history; 0: none. At most limits::token_history_bytes_max
  overflow_policy overflow = overflow_policy::refuse; // where a request does not say
  int keep_percent = 70; // of a context's tokens that stay when it is compressed; 1 .. limits::keep_percent_max
  int sink_tokens = 16;  // that a window keeps of the beginning; at most limits::window_sink_tokens_max
  int running_max = 64;  // sequences in one step
  int waiting_max = 256; // requests beyond the running ones; then queue_full
  int step_tokens = 256; // cut to what the device takes
  int workers = 1;       // tokenising threads
  log_sink log;
  std::optional<std::uint64_t> secret; // that tenants' salts are derived from; absent: drawn for this process
  bool fault_injection = false;  // kill() works
  bool check_invariants = false; // after each handler; costs walks over all pages
  clock_fn clock = real_clock();
};

class runtime {
public:
  static result<std::unique_ptr<runtime>> start(runtime_parts parts);
  ~runtime();
  runtime(const runtime&) = delete;
  runtime& operator=(const runtime&) = delete;

  edge_port& port();

  // Refuses new requests from now on, lets the accepted ones finish until `deadline`, then ends the rest with shutting_down and
  // stops every actor. true: everything was finished and stopped in time.
  bool drain(std::chrono::steady_clock::duration deadline);

  // A prompt that begins with these tokens is likely to come, from the tenant that `salt` stands for (as batch_request has it):
  // what of it lies below the device is brought up. A hint; nothing is promised. Any thread.
  void expect(std::uint64_t salt, std::vector<token_id> tokens);

  // Fault injection: that actor dies (a session's index is its request's number). unsupported unless switched on.
  result<void> kill(actor_kind kind, std::uint64_t index = 0);

private:
  struct parts_inside;
  explicit runtime(std::unique_ptr<parts_inside> inside);
  std::unique_ptr<parts_inside> inside_;
};

} // namespace troupe
