#include "actors/transfer_stream/transfer_stream.hpp"

#include "actors/support/actor_support.hpp"

namespace troupe {

namespace {

void complain(transfer_stream_state& state, const std::string& fault) {
  if (fault == state.last_fault)
    return;
  state.last_fault = fault;
  log_to(state.context->log, log_level::warning, "a page could not be moved: " + fault);
}

moved_page carry(transfer_stream_state& state, const page_move& move) {
  if (move.way == move_way::down) {
    if (const auto read = state.slot->read_page(move.page, state.page); !read) {
      complain(state, read.fault().message);
      return {};
    }
    const auto how = state.store->store(move, state.page);
    if (how.end == move_end::failed)
      complain(state, state.store->last_fault());
    return how;
  }
  auto how = state.store->load(move, state.page);
  if (how.end == move_end::damaged)
    complain(state, "its copy is damaged; it is computed again");
  if (how.end != move_end::done)
    return how;
  if (const auto written = state.slot->write_page(move.page, state.page); !written) {
    complain(state, written.fault().message);
    how.end = move_end::failed; // the copy stays where it is
  }
  return how;
}

pages_moved carry_all(transfer_stream_state& state, const move_pages& ask) {
  auto& metrics = *state.context->metrics;
  const copy_overlap::during copying(metrics.overlap, state.context->clock, copy_overlap::part::copying);
  pages_moved answer{ask.shard, ask.number, {}};
  for (const auto& move : ask.moves) {
    answer.moves.push_back(carry(state, move));
    if (answer.moves.back().end == move_end::done)
      metrics.bytes_moved[static_cast<std::size_t>(move.way)].fetch_add(state.page.size(), std::memory_order_relaxed);
  }
  return answer;
}

} // namespace

transfer_stream_actor::behavior_type transfer_stream(transfer_stream_actor::stateful_pointer<transfer_stream_state> self,
                                                     context_ptr context, std::shared_ptr<backend_slot> slot,
                                                     std::shared_ptr<tier_store> store) {
  settle_in(self, context);
  auto& state = self->state;
  state.context = std::move(context);
  state.slot = std::move(slot);
  state.store = std::move(store);
  state.page.resize(state.store->page_bytes());
  return {
      [self](const move_pages& ask) { return carry_all(self->state, ask); },
      [](const settle_moves& ask) {
        return moves_settled{ask.shard, ask.incarnation};
      },
  };
}

} // namespace troupe
