// Keeps what one shard's index says of the disk tier in records, so that the next process finds its pages there.
//
// Owns what the records held at the start, until the process's first shard takes it; a successor of that shard begins with
// nothing, and so do the records then. Promises: a record is written when its page has reached its slot, and erased when the
// index lets go of it. Both come late, or not at all where the process is killed or the disk is behind: then a record may name
// a slot that holds another page by now, or a torn one; the slot's own name and checksum tell (tier_file). What an index leaves
// out of what was kept is erased.
// read() belongs to the start of the process, the rest to the shard's thread; nothing but read() waits for the disk.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/record_store.hpp"
#include "memory/tier_index.hpp"

namespace troupe {

class tier_journal {
public:
  // Of any shard: the slots are no longer those that the records speak of.
  static void forget_all(record_store& records);

  tier_journal(std::shared_ptr<record_store> records, std::uint32_t shard);
  // What an earlier process left; how many entries.
  result<std::size_t> read();
  // `index` is empty; it gets what was read, once, and is followed from now on. This outlives it.
  void follow(tier_index& index);

private:
  void write(record_change change) { records_->write({std::move(change)}, nullptr); }

  const std::shared_ptr<record_store> records_;
  const std::string table_;
  std::vector<tier_record> kept_;
  bool taken_ = false;
};

} // namespace troupe
