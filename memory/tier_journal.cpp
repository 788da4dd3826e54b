#include "memory/tier_journal.hpp"

#include <optional>
#include <unordered_set>
#include <utility>

#include "base/record_bytes.hpp"
#include "config/limits.hpp"

namespace troupe {

namespace {

std::string table_of(std::uint32_t shard) {
  return "tier " + std::to_string(shard);
}

std::string bytes_of(const tier_record& r) {
  record_writer out;
  out.number(r.parent).number(r.salt).number(r.name.a).number(r.name.b).number(r.disk_slot).number(r.tokens.size());
  for (const token_id token : r.tokens)
    out.number(static_cast<std::uint64_t>(static_cast<std::uint32_t>(token)));
  return out.take();
}

std::optional<tier_record> record_from(std::string_view key, std::string_view value) {
  record_reader name(key), in(value);
  tier_record r;
  r.id = name.number();
  r.parent = in.number();
  r.salt = in.number();
  r.name.a = in.number();
  r.name.b = in.number();
  r.disk_slot = static_cast<std::uint32_t>(in.number());
  for (std::uint64_t tokens = in.count(sizeof(std::uint64_t)); tokens > 0; --tokens)
    r.tokens.push_back(static_cast<token_id>(static_cast<std::uint32_t>(in.number())));
  return name.complete() && in.complete() ? std::optional(std::move(r)) : std::nullopt;
}

} // namespace

void tier_journal::forget_all(record_store& records) {
  std::vector<record_change> changes;
  for (std::uint32_t shard = 0; shard < static_cast<std::uint32_t>(limits::kv_shards_max); ++shard)
    changes.push_back(record_change::erase_table(table_of(shard)));
  records.write(std::move(changes), nullptr);
}

tier_journal::tier_journal(std::shared_ptr<record_store> records, std::uint32_t shard)
    : records_(std::move(records)), table_(table_of(shard)) {}

result<std::size_t> tier_journal::read() {
  const auto done = records_->read(table_, [this](std::string_view key, std::string_view value) {
    if (auto record = record_from(key, value))
      kept_.push_back(std::move(*record)); // by id: parents first
  });
  if (!done)
    return done.fault();
  return kept_.size();
}

void tier_journal::follow(tier_index& index) {
  if (std::exchange(taken_, true)) {
    write(record_change::erase_table(table_));
  } else {
    index.restore(kept_);
    for (const tier_record& each : std::exchange(kept_, {}))
      if (!index.contains(each.id))
        write({table_, record_key(each.id), std::nullopt});
  }
  index.observe({[this](const tier_record& stored) {
                   write({table_, record_key(stored.id), bytes_of(stored)});
                 },
                 [this](tier_entry_id dropped) {
                   write({table_, record_key(dropped), std::nullopt});
                 }});
}

} // namespace troupe
