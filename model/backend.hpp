// The one border to hardware: the CPU backend, the CUDA backend and the tests' fakes implement it.
//
// A backend owns the weights in its own layout and the KV pages' memory; it decides nothing. One thread calls it (its compute
// stream), and one more, at the same time, copies pages out and in that no step touches (its transfer stream). Pages hold limits::page_tokens tokens; which page holds what is the caller's business (memory/). Writing a position
// changes nothing that a page holds of earlier ones: others copy them meanwhile.
//
// Results must not depend on what a sequence is batched with, nor on how its prompt is cut into chunks: the same tokens at the
// same positions give the same bits.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "base/prompt_state.hpp"
#include "base/result.hpp"
#include "base/sampling.hpp"
#include "model/attention_window.hpp"

namespace troupe {

using page_table = std::vector<page_id>;

// How much the tokens of a step attend to each position up to their own, as a mean over heads and all layers but the last.
enum class attention_score : std::uint8_t {
  none,
  peak, // the most that any of them does, by head
  mass, // the sum over them
};

// One sequence's part of a step: computes tokens[0..n) at positions position..position+n, given that all earlier positions
// are already in its pages. With no tokens, but the state that was kept at `position`, only the next token is chosen: exactly
// the one that computing the prompt would give.
struct sequence_step {
  request_id id;
  std::vector<token_id> tokens;              // at least 1, or none and a state
  std::int32_t position = 0;                 // of tokens[0]
  std::shared_ptr<const page_table> pages;   // by position; covers position + tokens.size() at least
  attention_window window = {};              // a page that none of the tokens sees may be any, or no_page; the others are distinct
  bool sample = false;                       // choose the token after tokens.back()
  std::shared_ptr<const sampling_params> sampling; // where sample
  std::vector<token_count> counts;           // where sampling->penalises()
  std::int32_t evicted = 0;                  // tokens that once stood before `position`: the next one's number counts them
  attention_score scores = attention_score::none; // answer with them
  bool keep_state = false;                   // where sample: answer with the state that the token is chosen from
  prompt_state_ptr state = {};               // where there are no tokens; of this backend
};

struct page_copy {
  page_id from = 0;
  page_id to = 0;
};

// Of a sequence's positions those in `kept` (ascending) remain: the i-th becomes position i, on pages that are the sequence's
// alone. A step that fails leaves them undefined.
struct kv_compaction {
  request_id id;
  std::shared_ptr<const page_table> from;
  std::shared_ptr<const page_table> to; // may have pages of `from`
  std::vector<std::int32_t> kept;
};

// What one step does: copies first, then compactions, then every sequence. Copies of a step do not overlap.
struct step_plan {
  std::uint64_t number = 0;
  std::vector<page_copy> copies;
  std::vector<kv_compaction> compactions;
  std::vector<sequence_step> sequences;

  int tokens() const noexcept {
    int n = 0;
    for (const auto& s : sequences)
      n += static_cast<int>(s.tokens.size());
    return n;
  }
};

struct sequence_result {
  request_id id;
  std::optional<sampled_token> token;  // where sample was asked
  std::optional<error> fault;          // this sequence failed; the others' results stand
  prompt_state_ptr state = {};         // where keep_state was asked and the backend keeps any
  std::vector<float> scores = {};      // where asked: [position + tokens.size()]
};

struct step_result {
  std::uint64_t number = 0;
  std::vector<sequence_result> sequences; // in the plan's order
  double seconds = 0;                     // wall time inside the backend
};

struct backend_shape {
  std::uint32_t pages = 0;       // KV pages the pool has
  std::size_t page_bytes = 0;    // all layers, keys and values
  std::size_t weight_bytes = 0;  // packed, as read each decode step
  int vocabulary = 0;            // logits a row
  int step_tokens_max = 0;       // tokens a step may carry
  std::string description;       // "cpu avx2, 2 threads"
};

class backend {
public:
  virtual ~backend() = default;
  virtual backend_shape shape() const = 0;
  // A whole-step failure (errc::device_failed) leaves pages of the plan's sequences undefined at the plan's positions, and all
  // others intact; the step may be run again.
  virtual result<step_result> run(const step_plan& plan) = 0;
  // A whole page, shape().page_bytes of it, out or in. Precondition: nobody writes the page meanwhile, or, of write_page, touches
  // it. A backend without these serves no tiers (errc::unsupported).
  virtual result<void> read_page(page_id page, std::span<std::byte> to) const;
  virtual result<void> write_page(page_id page, std::span<const std::byte> from);
};

inline result<void> backend::read_page(page_id, std::span<std::byte>) const {
  return fail(errc::unsupported, "this backend's pages can't be copied to the host");
}

inline result<void> backend::write_page(page_id, std::span<const std::byte>) {
  return fail(errc::unsupported, "this backend's pages can't be copied from the host");
}

} // namespace troupe
