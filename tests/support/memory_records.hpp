// A record store in memory, for tests: it can hold its writes back, refuse them, and be looked at and altered.
#pragma once
#include <deque>
#include <map>
#include <utility>

#include "base/record_store.hpp"

namespace troupe::testing {

class memory_records final : public record_store {
public:
  void write(std::vector<record_change> changes, written_fn done) override {
    waiting_.emplace_back(std::move(changes), std::move(done));
    if (!held)
      work();
  }
  result<void> read(std::string_view table, const std::function<void(std::string_view, std::string_view)>& each) override {
    for (const auto& [key, value] : tables[std::string(table)])
      each(key, value);
    return {};
  }

  // Ends the writes that were held back.
  void work() {
    while (!waiting_.empty()) {
      auto [changes, done] = std::move(waiting_.front());
      waiting_.pop_front();
      if (!refusal)
        for (record_change& change : changes)
          apply(std::move(change));
      if (done)
        done(refusal ? result<void>(*refusal) : result<void>());
    }
  }
  std::size_t waiting() const { return waiting_.size(); }
  std::size_t size() const {
    std::size_t records = 0;
    for (const auto& [name, table] : tables)
      records += table.size();
    return records;
  }

  bool held = false;
  std::optional<error> refusal;
  std::map<std::string, std::map<std::string, std::string>> tables;

private:
  void apply(record_change change) {
    if (change.whole_table)
      tables[change.table].clear();
    else if (change.value)
      tables[change.table][change.key] = std::move(*change.value);
    else
      tables[change.table].erase(change.key);
  }
  std::deque<std::pair<std::vector<record_change>, written_fn>> waiting_;
};

} // namespace troupe::testing
