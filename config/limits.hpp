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

// -- requests (invalid_argument or too_large error) --
inline constexpr int stop_strings_max = 16;
inline constexpr std::size_t stop_string_bytes_max = 1024;
inline constexpr int top_logprobs_max = 20;
inline constexpr int logit_bias_max = 1024;
inline constexpr int messages_max = 4096;
inline constexpr int tools_max = 512;

// -- queues (queue_full error, refused before tokenising) --
inline constexpr int waiting_requests_max = 1024;
inline constexpr int running_sequences_max = 256;

// -- the edge --
inline constexpr std::size_t header_bytes_max = 16u << 10;
inline constexpr std::size_t body_bytes_max = 16u << 20;
inline constexpr std::size_t websocket_message_bytes_max = 16u << 20;
inline constexpr int connections_max = 12'000;              // 429 or refused accept
inline constexpr std::size_t send_queue_bytes_max = 4u << 20; // cancel the request, close 1013
inline constexpr int json_depth_max = 64;
inline constexpr int websocket_lanes_max = 16;
inline constexpr int websocket_lane_queue_max = 8;
inline constexpr int stored_responses_max = 4096;           // oldest is dropped
inline constexpr auto header_deadline = 10s;
inline constexpr auto body_deadline = 60s;
inline constexpr auto idle_connection_deadline = 120s;
inline constexpr auto websocket_ping_interval = 20s;

// -- actors --
inline constexpr auto shutdown_deadline = 5s;
inline constexpr int restarts_max = 10; // within restart_window; then new work is refused
inline constexpr auto restart_window = 60s;

} // namespace troupe::limits
