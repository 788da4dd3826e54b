// What a token attends to once its sequence is longer than its window: the first pages, the sinks (Xiao et al. 2023, StreamingLLM),
// and the last ones. Counted in whole pages and from the token's own position alone, so that neither batches nor cuts of a prompt
// change what is seen.
#pragma once
#include "config/limits.hpp"

namespace troupe {

struct attention_window {
  int sink_pages = 0;
  int recent_pages = 0; // the token's own page and those before it; 0: there is no window, all is seen

  bool bounded() const noexcept { return recent_pages > 0; }
  int sinks() const noexcept { return sink_pages * limits::page_tokens; } // positions
  // The token at `position` sees all but [sinks(), hidden_end(position)).
  int hidden_end(int position) const noexcept {
    const int first = position / limits::page_tokens - recent_pages + 1;
    return bounded() && first > sink_pages ? first * limits::page_tokens : 0;
  }
  // Where the token stands for the sinks: as if what it does not see had never been, so that no distance exceeds the window.
  int position_for_sinks(int position) const noexcept {
    const int hidden = hidden_end(position);
    return hidden > 0 ? position - (hidden - sinks()) : position;
  }
  friend bool operator==(const attention_window&, const attention_window&) = default;
};

} // namespace troupe
