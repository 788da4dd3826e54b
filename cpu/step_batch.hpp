// A step plan, checked and laid out as rows: every token of every sound sequence is one row of the batch.
//
// A plan that breaks the contract of model/backend.hpp is answered, never followed: a sequence at fault gets its error here and
// no row. Built by the thread that runs the step, read by the whole team.
#pragma once
#include <cstdint>
#include <vector>

#include "model/backend.hpp"

namespace troupe::cpu {

struct batch_sequence {
  const sequence_step* step = nullptr;
  std::size_t result = 0; // index in the plan and the step's result
  int first_row = 0;
  int rows = 0;
  bool turned = false; // a row stands elsewhere for the sinks
};

struct batch_row {
  token_id token = 0;
  std::int32_t position = 0;
  std::int32_t sink_position = 0; // where it stands for its window's sinks; mostly the same
  page_id page = 0; // holds the position
  int slot = 0;     // within the page
};

struct step_batch {
  std::vector<batch_sequence> sequences; // with a row at least
  std::vector<batch_row> rows;
  std::vector<int> sampled; // rows whose next token is chosen
  std::vector<const batch_sequence*> sampled_by;
  bool turned = false; // a sequence is
  std::vector<batch_sequence> resumed; // those without rows, whose next token is chosen from the state that they bring
};

struct batch_bounds {
  int vocabulary = 0;
  std::size_t state_bytes = 0; // of a prompt_state that this backend made
  std::uint32_t pages = 0;
  int step_tokens_max = 0;
};

// Lays `plan` out in `batch` and fills `results` (the plan's order) with ids and faults. Fails as a whole with
// errc::invalid_argument where a copy or compaction breaks its contract, and errc::too_large beyond step_tokens_max.
result<void> lay_out(const step_plan& plan, const batch_bounds& bounds, step_batch& batch,
                     std::vector<sequence_result>& results);

} // namespace troupe::cpu
