// The CPU backend: packed weights, kernels chosen for this machine, paged KV in host memory, one thread team.
//
// Called by one compute stream thread, which leads the team (asleep when no step runs), and by one that copies pages. KV memory is reserved
// at start and touched when first written.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/log.hpp"
#include "base/result.hpp"
#include "model/backend.hpp"
#include "model/kv_type.hpp"
#include "model/weights.hpp"

namespace troupe {

struct cpu_options {
  int threads = 0;            // 0: the cores this process may use
  std::uint32_t pages = 1024; // KV pages
  kv_types kv;                // how they hold keys and values
  int step_tokens_max = 512;
  int usable_vocabulary = 0; // ids below this can be sampled; 0: all rows
  std::string isa;           // "", "plain", "avx2", "avx512": "" picks the best that passes its self-test
  bool touch_scratch = false; // all scratch memory is resident from the start, so that what follows is known
  bool pin_threads = false;  // tie each worker to a core; the caller's thread stays as it is
  log_sink log;
  // Sees every sampled row's logits before a token is chosen from them; for tests. Called by one thread at a time.
  std::function<void(const request_id&, std::span<const float>)> on_logits;
};

// errc::no_memory, errc::unsupported (an isa that this machine lacks, a KV type that the model's heads do not fit) or errc::model_format (tensors of contradictory shapes).
result<std::unique_ptr<backend>> make_cpu_backend(model_weights weights, const cpu_options& options);

} // namespace troupe
