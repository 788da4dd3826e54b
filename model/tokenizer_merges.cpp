#include "model/tokenizer_merges.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "base/check.hpp"

namespace troupe {
namespace {

// Up to here a scan for the lowest rank is faster than a heap.
constexpr std::size_t short_max = 96;

} // namespace

merge_table::merge_table(const std::vector<rule>& best_first) {
  const std::size_t capacity = std::bit_ceil(std::max<std::size_t>(16, best_first.size() + best_first.size() / 2));
  slots_.assign(capacity, slot{});
  mask_ = capacity - 1;
  const std::size_t words = std::bit_ceil(std::max<std::size_t>(1, best_first.size() * 8 / 64));
  present_.assign(words, 0);
  present_mask_ = words - 1;
  for (std::size_t rank = 0; rank < best_first.size(); ++rank) {
    const auto& r = best_first[rank];
    const std::uint64_t key = key_of(r.left, r.right);
    const std::uint64_t hash = hash_of(key);
    present_[(hash >> 6) & present_mask_] |= std::uint64_t{1} << (hash & 63);
    std::uint64_t place = (hash >> 20) & mask_;
    while (slots_[place].key != empty_key && slots_[place].key != key)
      place = (place + 1) & mask_;
    slots_[place] = {key, static_cast<std::uint32_t>(rank), r.result};
  }
}

std::size_t merge_table::apply(token_id* ids, std::size_t count, scratch& work) const {
  if (count < 2)
    return count;
  return count <= short_max ? apply_short(ids, count) : apply_long(ids, count, work);
}

std::size_t merge_table::apply_short(token_id* ids, std::size_t count) const noexcept {
  std::array<std::int32_t, short_max> ranks; // of the pair (i, i + 1)
  std::array<token_id, short_max> results;
  const auto look_up = [&](std::size_t i) {
    const auto found = find(ids[i], ids[i + 1]);
    ranks[i] = static_cast<std::int32_t>(found.rank);
    results[i] = found.result;
  };
  for (std::size_t i = 0; i + 1 < count; ++i)
    look_up(i);
  while (count > 1) {
    const std::size_t pairs = count - 1;
    std::int32_t lowest = ranks[0];
    for (std::size_t i = 1; i < pairs; ++i)
      lowest = std::min(lowest, ranks[i]);
    if (lowest == static_cast<std::int32_t>(no_rank))
      break;
    std::size_t at = 0;
    while (ranks[at] != lowest)
      ++at;
    ids[at] = results[at];
    const std::size_t after = count - at - 2; // symbols behind the merged pair
    std::memmove(ids + at + 1, ids + at + 2, after * sizeof(token_id));
    if (after > 0) {
      std::memmove(&ranks[at], &ranks[at + 1], after * sizeof(ranks[0]));
      std::memmove(&results[at], &results[at + 1], after * sizeof(results[0]));
    }
    --count;
    if (at > 0)
      look_up(at - 1);
    if (after > 0)
      look_up(at);
  }
  return count;
}

std::size_t merge_table::apply_long(token_id* ids, std::size_t count, scratch& work) const {
  TROUPE_CHECK(count <= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()));
  auto& nodes = work.nodes;
  auto& heap = work.heap;
  nodes.clear();
  heap.clear();
  const auto worse = [](const scratch::candidate& a, const scratch::candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
  };
  const auto candidate_at = [&](std::int32_t left, std::int32_t right) -> bool {
    const auto found = find(nodes[static_cast<std::size_t>(left)].id, nodes[static_cast<std::size_t>(right)].id);
    if (found.rank == no_rank)
      return false;
    heap.push_back(
        {found.rank, left, nodes[static_cast<std::size_t>(left)].id, nodes[static_cast<std::size_t>(right)].id, found.result});
    return true;
  };
  for (std::size_t i = 0; i < count; ++i)
    nodes.push_back({ids[i], static_cast<std::int32_t>(i) - 1, i + 1 < count ? static_cast<std::int32_t>(i) + 1 : -1});
  for (std::size_t i = 0; i + 1 < count; ++i)
    candidate_at(static_cast<std::int32_t>(i), static_cast<std::int32_t>(i) + 1);
  std::make_heap(heap.begin(), heap.end(), worse);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), worse);
    const auto best = heap.back();
    heap.pop_back();
    auto& left = nodes[static_cast<std::size_t>(best.position)];
    if (left.id != best.left || left.next < 0)
      continue;
    auto& right = nodes[static_cast<std::size_t>(left.next)];
    if (right.id != best.right)
      continue;
    left.id = best.result;
    right.id = -1; // consumed
    left.next = right.next;
    if (left.next >= 0) {
      nodes[static_cast<std::size_t>(left.next)].previous = best.position;
      if (candidate_at(best.position, left.next))
        std::push_heap(heap.begin(), heap.end(), worse);
    }
    if (left.previous >= 0 && candidate_at(left.previous, best.position))
      std::push_heap(heap.begin(), heap.end(), worse);
  }
  std::size_t kept = 0;
  for (std::int32_t i = 0; i >= 0; i = nodes[static_cast<std::size_t>(i)].next)
    ids[kept++] = nodes[static_cast<std::size_t>(i)].id;
  return kept;
}

} // namespace troupe
