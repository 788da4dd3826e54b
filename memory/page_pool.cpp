#include "memory/page_pool.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "config/limits.hpp"

namespace troupe {

page_pool::page_pool(page_id first, std::uint32_t count) : first_(first), count_(count), free_(0), slots_(count) {
  TROUPE_CHECK(count <= limits::kv_pages_max);
  TROUPE_CHECK(first <= UINT32_MAX - count);
  if (count > 0)
    insert_run({first, count});
}

std::optional<std::vector<page_handle>> page_pool::allocate(std::uint32_t n, std::optional<page_id> after) {
  if (n > free_)
    return std::nullopt;
  std::vector<page_handle> out;
  out.reserve(n);
  if (after && n > 0)
    if (auto behind = runs_.find(*after + 1); behind != runs_.end())
      take(*behind, n, out);
  while (out.size() < n) {
    const auto missing = n - static_cast<std::uint32_t>(out.size());
    auto fit = by_length_.lower_bound({missing, 0});
    if (fit == by_length_.end())
      fit = std::prev(by_length_.end()); // none holds all: the longest leaves the fewest pieces
    take({fit->second, fit->first}, missing, out);
  }
  return out;
}

void page_pool::take(run from, std::uint32_t n, std::vector<page_handle>& to) {
  const auto taken = std::min(n, from.second);
  erase_run(from);
  if (taken < from.second)
    insert_run({from.first + taken, from.second - taken});
  for (page_id page = from.first; page < from.first + taken; ++page) {
    slot& s = slots_[page - first_];
    s.references = 1;
    if (++s.generation == 0) // 0 names no page
      s.generation = 1;
    to.push_back({page, s.generation});
  }
}

void page_pool::retain(page_handle h) {
  TROUPE_CHECK(valid(h));
  ++slots_[h.page - first_].references;
}

bool page_pool::release(page_handle h) {
  TROUPE_CHECK(valid(h));
  if (--slots_[h.page - first_].references > 0)
    return false;
  give_back(h.page);
  return true;
}

std::uint32_t page_pool::references(page_handle h) const {
  TROUPE_CHECK(valid(h));
  return slots_[h.page - first_].references;
}

std::uint32_t page_pool::references_of(page_id page) const {
  TROUPE_CHECK(owns(page));
  return slots_[page - first_].references;
}

bool page_pool::valid(page_handle h) const noexcept {
  if (!owns(h.page) || h.generation == 0)
    return false;
  const slot& s = slots_[h.page - first_];
  return s.references > 0 && s.generation == h.generation;
}

void page_pool::give_back(page_id page) {
  run merged{page, 1};
  if (auto behind = runs_.find(page + 1); behind != runs_.end()) {
    merged.second += behind->second;
    erase_run(*behind);
  }
  if (auto next = runs_.upper_bound(page); next != runs_.begin())
    if (const auto before = std::prev(next); before->first + before->second == page) {
      merged = {before->first, before->second + merged.second};
      erase_run(*before);
    }
  insert_run(merged);
}

void page_pool::insert_run(run r) {
  runs_.emplace(r.first, r.second);
  by_length_.emplace(r.second, r.first);
  free_ += r.second;
}

void page_pool::erase_run(run r) {
  by_length_.erase({r.second, r.first});
  runs_.erase(r.first);
  free_ -= r.second;
}

void page_pool::check_invariants() const {
  std::uint32_t listed = 0;
  std::optional<page_id> end; // of the run before
  for (const auto& [start, length] : runs_) {
    TROUPE_CHECK(length > 0 && owns(start) && owns(start + length - 1));
    TROUPE_CHECK(!end || *end < start); // runs are apart, so each is maximal
    end = start + length;
    for (page_id page = start; page < start + length; ++page)
      TROUPE_CHECK(slots_[page - first_].references == 0);
    TROUPE_CHECK(by_length_.contains({length, start}));
    listed += length;
  }
  TROUPE_CHECK(by_length_.size() == runs_.size());
  const auto unused = std::count_if(slots_.begin(), slots_.end(), [](const slot& s) { return s.references == 0; });
  TROUPE_CHECK(listed == free_ && static_cast<std::uint32_t>(unused) == free_);
}

} // namespace troupe
