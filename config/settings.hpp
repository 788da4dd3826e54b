// All settings, with their defaults. Sources, later wins: defaults, YAML file, TROUPE_* environment, --set and flags. A value
// that is unknown, of a wrong type or out of range stops the start with one line that names it.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace troupe {

struct settings {
  struct {
    std::string path;          // file or folder; empty: models/tiny below the working folder
    std::string alias;         // the name clients use; empty: the model's own
    std::string chat_template; // empty: from the file
  } model;
  struct {
    std::string host = "127.0.0.1";
    int port = 8000;           // 0: any free one
    int threads = 1;
    int connections_max = 12'000;
    int send_queue_kib_max = 4096;
    bool echo_route = false;   // /__echo for conformance probes
    std::vector<std::string> api_keys;        // comma-separated; empty: none is asked for, and only loopback is served
    std::vector<std::string> allowed_origins; // comma-separated; browsers' origins besides the server's own
  } server;
  struct {
    int threads = 0;           // 0: the cores of this process
    std::string isa;           // empty: the best of this machine
  } cpu;
  struct {
    std::uint64_t limit = 0;   // bytes that the process may have resident, e.g. 600MiB; 0: none
    int context_tokens = 0;    // 0: the model's
    std::string context_overflow = "error"; // or "window", or "compress"; a request may choose
    int keep_percent = 70;     // of a context's tokens that stay when it is compressed
    int window_sinks = 16;     // tokens that a window keeps of the beginning
    int kv_mib = 0;            // 0: room for max(8 contexts of 4096, 1 full context), at most a quarter of RAM
    int kv_shards = 2;
    std::string kv_keys = "f16";   // f16, bf16, int8 or int4
    std::string kv_values = "f16"; // likewise
    bool prefix_reuse = true;    // what was computed for one request is found by others of its tenant
    bool partial_pages = true;   // to the token, by copying the page in part full; off: whole pages of 16
    int prompt_states = 256;     // a shard: prompts whose repetition starts with no forward pass; 0: none
    int prefix_ttl_s = 0;        // of what nobody uses; 0: no end
    std::string prefix_eviction = "lru"; // which goes first when pages run short: lru or lfu
    int pinned_percent = 25;     // of a shard's pages that requests may pin
    int host_tier_mib = 0;       // of copies of KV pages in the host's memory; 0: none
    int disk_tier_mib = 0;       // of copies in a file; 0: none
    std::string tier_dir;        // the file's folder; empty: /var/tmp
    int tier_ttl_s = 0;          // of copies that nobody uses; 0: no end
    int prefetch_ahead = 2;      // conversations whose pages are brought up before they are asked for; 0: none
    bool token_history = true;  // a chat's known turns are not rendered and tokenised again
    int token_history_mib = 64; // beyond it the conversation used longest ago is forgotten
    bool persistence = false;   // stored responses and cached pages survive a restart of the process
    std::string state_dir;      // where; empty: $XDG_STATE_HOME/troupe or ~/.local/state/troupe
  } memory;
  struct {
    int running_max = 64;      // sequences in one step
    int waiting_max = 256;     // beyond it requests are refused
    int step_tokens = 256;     // tokens in one step: decodes plus a slice of prefill
  } scheduler;
  struct {
    bool exit_with_parent = false;
    int shutdown_ms = 5000;
    bool fault_injection = false; // runtime::kill works (tests and embedding hosts)
  } process;
};

// `text` as YAML; unknown keys are errors.
result<void> apply_yaml(settings& s, std::string_view text);
// One "section.key=value".
result<void> apply_override(settings& s, std::string_view assignment);
// TROUPE_SECTION_KEY from the environment.
result<void> apply_environment(settings& s);
// Every key with its current value, "section.key=value" a line.
std::string describe(const settings& s);

} // namespace troupe
