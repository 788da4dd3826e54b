#include "io/response_store.hpp"

#include <algorithm>
#include <iterator>

#include "config/limits.hpp"
#include "io/response_records.hpp"

namespace troupe {
namespace {

std::size_t bytes_of(const chat_message& message) {
  return sizeof(chat_message) + text_bytes(message) + message.tool_calls.size() * sizeof(tool_call);
}

std::size_t own_bytes(const stored_response& response) {
  return sizeof(stored_response) + response.id.size() + response.tenant.size() + response.json.size() +
         response.conversation.size() * sizeof(response.conversation[0]);
}

} // namespace

response_store::~response_store() {
  std::unique_lock lock(mutex_);
  written_.wait(lock, [this] { return writing_ == 0; });
}

// ---- under the mutex ----

void response_store::enter(std::uint64_t number, stored_response response) {
  bytes_ += own_bytes(response);
  for (const auto& message : response.conversation) {
    holder& held = holders_[message.get()];
    if (++held.responses == 1) {
      bytes_ += bytes_of(*message);
      if (held.number == 0)
        held.number = next_number_++;
    }
  }
  entries_.emplace(number, entry{std::move(response), false});
}

void response_store::show(std::uint64_t number) {
  entry& shown = entries_.at(number);
  shown.visible = true;
  by_id_[shown.response.id] = number;
}

void response_store::drop(entries::iterator it, changes& erased) {
  const stored_response& response = it->second.response;
  bytes_ -= own_bytes(response);
  erased.push_back({std::string(response_table), record_key(it->first), std::nullopt});
  for (const auto& message : response.conversation) {
    const auto held = holders_.find(message.get());
    if (--held->second.responses > 0)
      continue;
    bytes_ -= bytes_of(*message);
    erased.push_back({std::string(message_table), record_key(held->second.number), std::nullopt});
    holders_.erase(held);
  }
  if (it->second.visible)
    by_id_.erase(response.id);
  entries_.erase(it);
}

// Those that are not visible yet are being written, a few at most, and not touched.
void response_store::keep_bounds(changes& erased) {
  for (auto it = entries_.begin(); it != entries_.end() && (entries_.size() > bounds_.responses || bytes_ > bounds_.bytes);) {
    const auto oldest = it++;
    if (oldest->second.visible)
      drop(oldest, erased);
  }
}

response_store::changes response_store::records_of(std::uint64_t number) const {
  const stored_response& response = entries_.at(number).response;
  changes out;
  response_record record{response.id, response.tenant, response.json, {}};
  for (const auto& message : response.conversation) {
    const holder& held = holders_.at(message.get());
    record.messages.push_back(held.number);
    if (!held.recorded)
      out.push_back({std::string(message_table), record_key(held.number), message_bytes(*message)});
  }
  out.push_back({std::string(response_table), record_key(number), response_bytes(record)});
  return out;
}

const stored_response* response_store::find(std::string_view id, std::string_view tenant) const {
  const auto it = by_id_.find(std::string(id));
  if (it == by_id_.end())
    return nullptr;
  const stored_response& found = entries_.at(it->second).response;
  return found.tenant == tenant ? &found : nullptr;
}

// ---- writing ----

// `then` runs while the destructor still waits.
void response_store::write(changes wanted, written_fn then) {
  changes erased;
  {
    const std::lock_guard lock(mutex_);
    ++writing_;
    wanted.insert(wanted.begin(), std::make_move_iterator(owed_.begin()), std::make_move_iterator(owed_.end()));
    owed_.clear();
  }
  std::copy_if(wanted.begin(), wanted.end(), std::back_inserter(erased), [](const record_change& c) { return !c.value; });
  records_->write(std::move(wanted), [this, next = std::move(then), erased = std::move(erased)](result<void> outcome) {
    if (next)
      next(outcome);
    const std::lock_guard lock(mutex_);
    failures_ += outcome ? 0 : 1;
    if (!outcome && owed_.size() + erased.size() <= limits::owed_erasures_max)
      owed_.insert(owed_.end(), erased.begin(), erased.end());
    --writing_;
    written_.notify_all();
  });
}

store_answer response_store::put(stored_response response, written_fn keeper) {
  changes wanted;
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    if (const auto old = by_id_.find(response.id); old != by_id_.end())
      drop(entries_.find(old->second), wanted);
    number = next_number_++;
    enter(number, std::move(response));
    if (!records_) {
      show(number);
      keep_bounds(wanted);
      return store_answer::done;
    }
    keep_bounds(wanted);
    for (record_change& each : records_of(number))
      wanted.push_back(std::move(each));
  }
  write(std::move(wanted), [this, number, next = std::move(keeper)](const result<void>& outcome) {
    on_put(number, outcome);
    if (next)
      next(outcome);
  });
  return store_answer::under_way;
}

void response_store::on_put(std::uint64_t number, const result<void>& outcome) {
  changes erased;
  {
    const std::lock_guard lock(mutex_);
    if (outcome) {
      for (const auto& message : entries_.at(number).response.conversation)
        holders_.at(message.get()).recorded = true;
      show(number);
      keep_bounds(erased);
    } else {
      drop(entries_.find(number), erased);
    }
  }
  if (!erased.empty())
    write(std::move(erased), nullptr);
}

store_answer response_store::erase(std::string_view id, std::string_view tenant, written_fn keeper) {
  changes erased;
  {
    const std::lock_guard lock(mutex_);
    if (!find(id, tenant))
      return store_answer::unknown;
    drop(entries_.find(by_id_.at(std::string(id))), erased);
  }
  if (!records_)
    return store_answer::done;
  write(std::move(erased), std::move(keeper));
  return store_answer::under_way;
}

// ---- restoring ----

void response_store::restore(const log_sink& log) {
  if (!records_)
    return;
  const auto found = read_responses(*records_, log);
  changes of_no_use;
  for (const std::uint64_t number : found.damaged)
    of_no_use.push_back({std::string(response_table), record_key(number), std::nullopt});
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, message] : found.messages) {
      next_number_ = std::max(next_number_, number + 1);
      if (message.use_count() > 1) // a response holds it
        holders_[message.get()] = {0, number, true};
      else
        of_no_use.push_back({std::string(message_table), record_key(number), std::nullopt});
    }
    for (const auto& [number, response] : found.responses) {
      next_number_ = std::max(next_number_, number + 1);
      enter(number, response);
      show(number);
    }
    keep_bounds(of_no_use);
    log_to(log, log_level::info, "records: " + std::to_string(entries_.size()) + " stored responses are back");
  }
  if (!of_no_use.empty())
    write(std::move(of_no_use), nullptr);
}

// ---- reading ----

std::optional<shared_conversation> response_store::conversation(std::string_view id, std::string_view tenant) const {
  const std::lock_guard lock(mutex_);
  const stored_response* found = find(id, tenant);
  return found ? std::optional(found->conversation) : std::nullopt;
}

std::optional<std::string> response_store::json(std::string_view id, std::string_view tenant) const {
  const std::lock_guard lock(mutex_);
  const stored_response* found = find(id, tenant);
  return found ? std::optional(found->json) : std::nullopt;
}

bool response_store::drop_oldest() {
  changes erased;
  {
    const std::lock_guard lock(mutex_);
    const auto oldest = std::find_if(entries_.begin(), entries_.end(), [](const auto& e) { return e.second.visible; });
    if (oldest == entries_.end())
      return false;
    drop(oldest, erased);
  }
  if (records_)
    write(std::move(erased), nullptr);
  return true;
}

std::size_t response_store::size() const {
  const std::lock_guard lock(mutex_);
  return by_id_.size();
}

std::size_t response_store::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

std::uint64_t response_store::failures() const {
  const std::lock_guard lock(mutex_);
  return failures_;
}

} // namespace troupe
