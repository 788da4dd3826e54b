// Which tokens of a sequence stay when its memory budget is used up. Plain functions; any thread.
//
// The score of a token is how strongly the sequence needs it to say itself again (as KVzip does, Kim et al. 2025): its tokens are
// read a second time behind themselves, a chunk at a time, and a token scores the most attention that any row paid to it, as a
// mean over heads and layers. Neighbours share their scores, so that spans stay whole. It knows no question: what is asked later
// decides nothing, which is what a chat needs (bench/README.md compares it with others).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace troupe {

struct eviction_rule {
  int sinks = 4;   // first positions that stay, at most a quarter of all that stay
  int recent = 16; // last ones, likewise
  int span = 5;    // neighbours whose mean is a position's score; odd
};

// The `keep` positions that stay, ascending: the protected ones and the highest scores, of equals the later ones. Precondition:
// 1 <= keep <= scores.size().
std::vector<std::int32_t> choose_kept(std::span<const float> scores, int keep, const eviction_rule& rule = {});

// One reading of a chunk again: positions [lead, end), of which those from `begin` on are new.
struct reading_again {
  int lead = 0;
  int begin = 0;
  int end = 0;
};

inline constexpr int reading_rows_max = 128; // pages for them are kept behind the budget
// Of `positions` in all, the chunk that begins at `begin`, in at most `rows` rows; an eighth of them lead.
reading_again read_again_from(int begin, int positions, int rows) noexcept;

} // namespace troupe
