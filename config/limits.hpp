// Every bound of the product, in one place. Each says what happens when it is reached.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace troupe::limits {

using namespace std::chrono_literals;

// -- model files (model_format error) --
inline constexpr std::uint64_t model_file_bytes_max = 1ull << 42;
inline constexpr std::uint64_t gguf_kv_count_max = 1u << 16;
inline constexpr std::uint64_t gguf_tensor_count_max = 1u << 16;
inline constexpr std::uint64_t gguf_string_bytes_max = 1u << 24;
inline constexpr std::uint64_t gguf_array_items_max = 1u << 24;
inline constexpr std::uint64_t safetensors_header_bytes_max = 100u << 20;
inline constexpr std::uint64_t json_file_bytes_max = 256u << 20;
inline constexpr int layers_max = 512;
inline constexpr int width_max = 1 << 18; // hidden, ffn, q_dim
inline constexpr int heads_max = 1024;
inline constexpr int head_dim_max = 512;
inline constexpr int vocabulary_max = 1 << 22;
inline constexpr int context_tokens_max = 1 << 24;

// -- KV memory --
inline constexpr int page_tokens = 16;
static_assert((page_tokens & (page_tokens - 1)) == 0, "positions are split by masks");
inline constexpr int kv_shards_max = 64;
inline constexpr int kv_mib_max = 1 << 24; // the settings are refused
inline constexpr std::uint32_t kv_pages_max = 1u << 24; // a shard; more is refused at the start
inline constexpr std::uint32_t kv_leases_max = 1024;    // a shard; beyond it a reservation is refused (no_memory)
inline constexpr std::uint32_t prompt_states_max = 4096; // a shard; the least recently used goes
inline constexpr int window_sink_tokens_max = 4096; // the settings are refused
inline constexpr int overflow_contexts_max = 16;    // of text that a prompt may bring where it may be cut; beyond it context_full
inline constexpr int keep_percent_max = 95;         // of a budget that an eviction keeps; the settings are refused
inline constexpr auto pin_life = 24h;                   // of a pinned prompt that nobody uses; then it is evicted as any other
inline constexpr int pinned_percent_max = 90;           // of a shard's pages; beyond the setting a prompt is not pinned, and counted
inline constexpr std::chrono::seconds prefix_ttl_max = 8760h; // the settings are refused

// -- KV tiers --
inline constexpr int tier_mib_max = 1 << 26;                    // of a tier; the settings are refused
inline constexpr std::uint32_t tier_slots_max = 1u << 24;       // a shard and tier; further room stays unused
inline constexpr std::chrono::seconds tier_ttl_max = 87600h;    // the settings are refused
inline constexpr std::size_t tier_identity_bytes_max = 3072;    // of a tier file; invalid_argument
inline constexpr std::uint32_t tier_load_pages_max = 32;        // of one load under way; the next ones wait for these
inline constexpr std::uint32_t tier_prefetch_pages_max = 8;     // likewise, of a prefetch
inline constexpr std::uint32_t tier_write_pages_max = 4;        // a shard copies down at a time; the next ones wait for these
inline constexpr int tier_waits_max = 4;                        // loads a reservation waits for; then it takes what is there
inline constexpr std::size_t known_conversations_max = 4096;    // a shard, for prediction; the least recently seen is forgotten
inline constexpr int prefetches_max = 4;                        // under way in a shard; further hints are dropped
inline constexpr int prefetch_ahead_max = 8;                    // conversations; the settings are refused

// -- memory.limit --
inline constexpr std::uint64_t memory_limit_max = 1ull << 50; // the settings are refused
inline constexpr std::uint64_t body_working_factor = 8;       // reading a body takes this many times its size, for a moment
inline constexpr int limited_kv_tokens_min = 256;             // a shard, or the context where that is less; or the start is refused

// -- token histories (the conversation used longest ago is forgotten) --
inline constexpr int token_history_mib_max = 1 << 14; // that the setting may ask for
inline constexpr std::size_t token_history_bytes_max = std::size_t{token_history_mib_max} << 20;

// -- records on disk, with memory.persistence --
inline constexpr std::size_t records_waiting_max = 4096;              // transactions not yet written; queue_full
inline constexpr std::size_t records_waiting_bytes_max = 64u << 20;   // of these; queue_full
inline constexpr std::uint64_t records_bytes_max = 1ull << 30;        // of their file; io_failed

// -- requests (invalid_argument or too_large error) --
inline constexpr int stop_strings_max = 16;
inline constexpr std::size_t stop_string_bytes_max = 1024;
inline constexpr int top_logprobs_max = 20;
inline constexpr int logit_bias_max = 1024;
inline constexpr int messages_max = 4096;
inline constexpr int choices_max = 16;                     // of one request (n)
inline constexpr int choices_tokens_max = 1 << 20;         // of all choices: n times max_tokens, or times the context
inline constexpr int tools_max = 512;
inline constexpr std::size_t tool_call_bytes_max = 1u << 20; // one call that the model writes; beyond it is text
inline constexpr float temperature_max = 2.0f;               // as OpenAI's API
inline constexpr float penalty_max = 2.0f;                   // presence and frequency, either sign
inline constexpr int tool_calls_max = 512;       // of one message
inline constexpr int content_parts_max = 4096;   // of one message

// -- queues (queue_full error, refused before tokenising) --
inline constexpr int waiting_requests_max = 1024;
inline constexpr int running_sequences_max = 256;

// -- the batcher --
inline constexpr int step_tokens_max = 8192;            // the settings are refused
inline constexpr int end_tokens_max = 64;               // of a request; invalid_argument
inline constexpr int priority_max = 100;                // and -100; invalid_argument
inline constexpr int reservations_outstanding_max = 16; // further ones wait for an answer
inline constexpr int reservation_failures_max = 3;      // in a row, other than for want of memory; then the request fails
inline constexpr int step_failures_max = 2;             // in a row with one sequence; then its request fails (device_failed)
inline constexpr std::size_t known_prefixes_max = 1u << 16; // pages whose shard the batcher remembers; the oldest goes
static_assert(kv_leases_max >= 2 * static_cast<std::uint32_t>(running_sequences_max), "leases being released count, too");

// -- the edge --
inline constexpr std::size_t header_bytes_max = 16u << 10;            // 431; a chunk's or trailer's, too
inline constexpr std::size_t body_bytes_max = 16u << 20;              // 413
inline constexpr std::size_t websocket_message_bytes_max = 16u << 20; // close 1009
inline constexpr int connections_max = 12'000;              // 429 or refused accept
inline constexpr int edge_threads_max = 64;                // the settings are refused
inline constexpr int cpu_threads_max = 1024;               // the settings are refused
inline constexpr std::size_t send_queue_bytes_max = 4u << 20; // cancel the request, close 1013
inline constexpr int json_depth_max = 64;                   // invalid_argument
inline constexpr int websocket_lanes_max = 16;              // queue_full
inline constexpr int websocket_lane_queue_max = 8;          // queue_full
inline constexpr std::size_t owed_erasures_max = 1 << 16;     // that the disk refused; further ones come back with a restart
inline constexpr int stored_responses_max = 4096;           // oldest is dropped
inline constexpr std::size_t stored_responses_bytes_max = 256u << 20; // oldest is dropped
inline constexpr int socket_stored_responses_max = 128;     // of one socket, with store:false; oldest is dropped
inline constexpr std::size_t socket_stored_bytes_max = 16u << 20;     // of these; oldest is dropped, as where all sockets' are too many
inline constexpr std::size_t conversation_bytes_max = 16u << 20; // of a response and those before it; too_large
inline constexpr std::size_t websocket_waiting_bytes_max = 32u << 20; // of one socket's waiting requests; queue_full
inline constexpr std::size_t buffered_input_bytes_max = 512u << 20;   // of all connections: 429, close 1013
inline constexpr std::size_t uncounted_input_bytes = 64u << 10;        // of one connection: bounded by their number
inline constexpr std::size_t buffered_answer_bytes_max = 512u << 20;  // of all connections: cancel the request, close 1013
inline constexpr std::size_t metadata_bytes_max = 64u << 10;          // too_large
inline constexpr std::size_t pipelined_bytes_max = 64u << 10; // read ahead of an unfinished answer; then the connection ends
inline constexpr std::size_t linger_bytes_max = 1u << 20;     // read and dropped after a refusal, so that the client sees it
inline constexpr std::size_t websocket_read_pause_bytes = 1u << 20; // queued to a peer; it is not read until it reads
inline constexpr int refused_connections_max = 64;          // over the cap but told so with 429; beyond: closed unanswered
inline constexpr auto header_deadline = 10s;                // 408, or closed where nothing came
inline constexpr auto body_deadline = 60s;                  // 408
inline constexpr auto idle_connection_deadline = 120s;      // closed
inline constexpr auto websocket_ping_interval = 20s;
inline constexpr auto websocket_pong_deadline = 25s;        // no byte since the ping: close 1011
inline constexpr auto websocket_life = 60min;               // then running responses end and the socket closes with 1001
inline constexpr auto write_stall_deadline = 30s;           // no byte taken by the peer: cancel and drop
inline constexpr auto sse_ping_interval = 10s;
inline constexpr auto answer_stall_deadline = 10min;        // no event of a request, queued or running: cancel, timeout
inline constexpr auto linger_deadline = 5s;                 // closed
inline constexpr auto edge_tick = 5s;                       // all edge deadlines are checked at this pace

// -- actors --
inline constexpr auto shutdown_deadline = 5s;              // unless the settings choose another
inline constexpr std::chrono::milliseconds shutdown_ms_max = 10min; // the settings are refused
inline constexpr int restarts_max = 10; // within restart_window; then new work is refused
inline constexpr auto restart_window = 60s;
inline constexpr auto restart_delay_min = 20ms; // before the second restart within the window; the first comes at once
inline constexpr auto restart_delay_max = 2s;   // doubled up to here
inline constexpr int resubmissions_max = 64;    // of one request after deaths; unavailable beyond
inline constexpr auto step_deadline = 120s;     // a step that runs longer makes the health failing
inline constexpr int workers_max = 16;          // tokenising threads
inline constexpr int control_threads = 2;       // that run the control actors

} // namespace troupe::limits
