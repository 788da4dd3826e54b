// Owns which pages of a contiguous range [first, first + count) are free and how often each other one is referenced.
// Promises: a page is given out only while it is free; a handle is good until the page's last reference is released, and
// detected as stale from then on, because every allocation raises the page's generation.
// Limits: count is at most limits::kv_pages_max. Memory itself (bytes) lies in the backend. One thread, no locks.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/ids.hpp"

namespace troupe {

// A page as it was when it was given out.
struct page_handle {
  page_id page = 0;
  std::uint32_t generation = 0; // 0: no page
  friend bool operator==(const page_handle&, const page_handle&) = default;
};

class page_pool {
public:
  page_pool(page_id first, std::uint32_t count);

  // `n` pages with one reference each, or nothing where fewer are free. Prefers, in this order: the pages right behind
  // `after` (where given), the smallest free run that holds all, as few runs as possible.
  std::optional<std::vector<page_handle>> allocate(std::uint32_t n, std::optional<page_id> after = {});
  // Precondition of these three: valid(h).
  void retain(page_handle h);
  bool release(page_handle h); // true: that was the last reference, the page is free
  std::uint32_t references(page_handle h) const;

  bool valid(page_handle h) const noexcept; // the page is in use and was not given out anew since
  bool owns(page_id page) const noexcept { return page >= first_ && page - first_ < count_; }
  page_id first() const noexcept { return first_; }
  std::uint32_t count() const noexcept { return count_; }
  std::uint32_t free_pages() const noexcept { return free_; }
  std::uint32_t references_of(page_id page) const; // 0: free

  void check_invariants() const;

private:
  struct slot {
    std::uint32_t references = 0;
    std::uint32_t generation = 0;
  };
  using run = std::pair<page_id, std::uint32_t>; // start, length

  void take(run from, std::uint32_t n, std::vector<page_handle>& to);
  void give_back(page_id page);
  void insert_run(run r);
  void erase_run(run r);

  page_id first_;
  std::uint32_t count_;
  std::uint32_t free_;
  std::vector<slot> slots_;
  std::map<page_id, std::uint32_t> runs_;                // free, maximal: start -> length
  std::set<std::pair<std::uint32_t, page_id>> by_length_; // the same ones
};

} // namespace troupe
