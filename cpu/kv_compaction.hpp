// Moves what is kept of a sequence's keys and values together (kv_compaction of model/backend.hpp).
//
// All rows of a head are read before any is written, so that the pages may be the same. Each kept key is turned from its old
// position to its new one and rounded once more; values are read and written in their type.
#pragma once
#include "cpu/kv_store.hpp"
#include "cpu/thread_team.hpp"
#include "cpu/vector_kernels.hpp"
#include "model/backend.hpp"
#include "model/hyperparameters.hpp"
#include "model/rope.hpp"

namespace troupe::cpu {

// errc::invalid_argument says what of it breaks the contract.
result<void> check_compaction(const kv_compaction& c, std::uint32_t pages);

// Precondition: check_compaction(). Throws std::bad_alloc before anything was written.
void compact(const kv_compaction& c, const hyperparameters& shape, const rope_table& rope, const vector_kernels& kernels,
             const kv_store& kv, thread_team& team);

} // namespace troupe::cpu
