#include "batch_world.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

#include "base/random.hpp"
#include "tests/support/prefix_names.hpp"

namespace troupe::test {

using testing::append;
using testing::name_of;
using testing::state_named;

namespace {

constexpr std::uint64_t beginning = 0x5eed;
constexpr std::uint64_t garbage = ~0ull;
constexpr std::uint64_t being_loaded = garbage - 1'000'000;

token_id choose(std::uint64_t prefix, std::uint64_t seed) {
  return static_cast<token_id>(random_at(seed, prefix) % static_cast<std::uint64_t>(vocabulary));
}

std::string name(request_id id) { return std::to_string(id.number) + "." + std::to_string(id.generation); }

} // namespace

batch_schedule_config small_config(std::vector<std::uint32_t> pages) {
  batch_schedule_config c;
  c.shard_pages = std::move(pages);
  c.running_max = 8;
  c.waiting_max = 64;
  c.step_tokens = 32;
  c.first_reservation_tokens = limits::page_tokens;
  c.admission_lookahead_tokens = limits::page_tokens;
  return c;
}

std::vector<token_id> prompt_of(int kind, int length) {
  std::vector<token_id> out;
  for (int i = 0; i < length; ++i)
    out.push_back(static_cast<token_id>(random_at(static_cast<std::uint64_t>(kind), static_cast<std::uint64_t>(i)) % 50));
  return out;
}

batch_world::batch_world(batch_schedule_config config, prefix_policy prefix, tier_config tiers)
    : config_(std::move(config)), prefix_(prefix), schedule_(std::make_unique<batch_schedule>(config_)), tiers_(tiers) {
  page_id first = 0;
  for (const auto pages : config_.shard_pages) {
    shards_.emplace_back().first = first;
    first += pages;
  }
  cells_.assign(std::size_t{first} * static_cast<std::size_t>(limits::page_tokens), garbage);
  for (std::uint32_t i = 0; i < shard_count(); ++i)
    restart_shard(i);
  carry_out(schedule_->compute_ready());
}

batch_request batch_world::request(std::vector<token_id> prompt, int max_new_tokens) {
  batch_request r;
  r.id = {next_number_++, 0};
  r.prompt_length = static_cast<int>(prompt.size());
  r.tokens = std::make_shared<const std::vector<token_id>>(std::move(prompt));
  r.max_new_tokens = max_new_tokens;
  r.context_tokens = 1'000'000;
  auto sampling = std::make_shared<sampling_params>();
  sampling->seed = r.id.number;
  r.sampling = std::move(sampling);
  r.salt = 7;
  return r;
}

session_record& batch_world::submit(const batch_request& r) {
  session_record& s = sessions_[r.id.number];
  s.request = r;
  s.tokens = r.tokens ? *r.tokens : std::vector<token_id>{};
  s.submitted_at_step = steps_started_;
  note("submit " + name(r.id));
  carry_out(schedule_->submit(r, now_));
  return s;
}

void batch_world::cancel(request_id id) {
  note("cancel " + name(id));
  session_record& s = sessions_.at(id.number);
  const bool live = !s.ended() && s.request.id == id;
  if (live)
    s.cancelled_at_step = steps_started_;
  carry_out(schedule_->cancel(id));
  if (live)
    REQUIRE(s.finished);
}

bool batch_world::deliver_to_shard(std::uint32_t index) {
  shard_side& s = shards_[index];
  if (s.inbox.empty())
    return false;
  const auto message = std::move(s.inbox.front());
  s.inbox.pop_front();
  const auto refuse = [&](const auto& ask) {
    if (refuse_times_ <= 0)
      return false;
    --refuse_times_;
    s.outbox.emplace_back(pages_refused{index, ask.lease, ask.id, fail(refuse_code_, "as the test wants"), {}});
    return true;
  };
  if (const auto* reserve = std::get_if<reserve_pages>(&message)) {
    if (!refuse(*reserve))
      carry_out(index, s.memory->reserve(*reserve));
  } else if (const auto* grow = std::get_if<grow_pages>(&message)) {
    if (!refuse(*grow))
      carry_out(index, s.memory->grow(*grow));
  } else if (const auto* publish = std::get_if<publish_pages>(&message)) {
    carry_out(index, s.memory->publish(*publish));
  } else {
    carry_out(index, s.memory->release(std::get<release_pages>(message)));
  }
  return true;
}

bool batch_world::deliver_from_shard(std::uint32_t index) {
  shard_side& s = shards_[index];
  if (s.outbox.empty())
    return false;
  const auto answer = std::move(s.outbox.front());
  s.outbox.pop_front();
  if (const auto* reserved = std::get_if<pages_reserved>(&answer)) {
    if (const auto lease = leases_.find(reserved->lease); lease != leases_.end())
      lease->second.granted = true;
  } else if (const auto* refused = std::get_if<pages_refused>(&answer)) {
    const auto lease = leases_.find(refused->lease);
    if (lease != leases_.end() && (refused->fault.code == errc::not_found ||
                                   (!lease->second.granted && refused->fault.code == errc::no_memory)))
      leases_.erase(lease);
  }
  carry_out(std::visit([&](const auto& what) { return schedule_->answered(what); }, answer));
  return true;
}

void batch_world::pump() {
  for (bool moved = true; moved;) {
    moved = false;
    for (std::uint32_t i = 0; i < shard_count(); ++i) {
      moved = deliver_to_shard(i) || moved;
      moved = deliver_from_shard(i) || moved;
    }
    moved = deliver_move() || moved;
  }
}

// -- pages between the tiers --

void batch_world::carry_out(std::uint32_t index, shard_actions actions) {
  for (auto& action : actions) {
    if (auto* message = std::get_if<move_pages>(&action)) {
      REQUIRE(transfer_alive_);
      page_flight flight{*message, {}};
      for (const auto& one : message->moves) {
        const auto cells = cells_of(one.page);
        if (one.way == move_way::up)
          std::ranges::fill(cells, being_loaded);
        flight.cells.emplace_back(cells.begin(), cells.end());
      }
      moves_.push_back(std::move(flight));
      continue;
    }
    std::visit(
        [&](auto& answer) {
          if constexpr (!std::is_same_v<std::decay_t<decltype(answer)>, move_pages>)
            shards_[index].outbox.emplace_back(answer);
        },
        action);
  }
}

// Nobody has written a page that was on its way.
pages_moved batch_world::move(const page_flight& flight) {
  pages_moved news{flight.message.shard, flight.message.number, {}};
  for (std::size_t i = 0; i < flight.message.moves.size(); ++i) {
    const auto& one = flight.message.moves[i];
    const auto cells = cells_of(one.page);
    REQUIRE(std::ranges::equal(cells, flight.cells[i]));
    moved_page how{move_end::done, {}};
    if (one.way == move_way::up) {
      const auto& [named, stored] = below_.at({index_of(one.from), one.slots[index_of(one.from)].value()});
      REQUIRE(named == one.name);
      std::ranges::copy(stored, cells.begin());
    }
    for (std::size_t level = 0; level < tier_levels; ++level)
      if (one.slots[level]) {
        below_[{level, *one.slots[level]}] = {one.name, {cells.begin(), cells.end()}};
        how.holds[level] = true;
      }
    news.moves.push_back(how);
  }
  return news;
}

bool batch_world::deliver_move() {
  if (moves_.empty())
    return false;
  const auto flight = std::move(moves_.front());
  moves_.pop_front();
  const auto news = move(flight);
  if (!flight.orphan)
    carry_out(news.shard, shards_[news.shard].memory->moved(news));
  return true;
}

void batch_world::kill_transfer() {
  note("kill transfer");
  transfer_alive_ = false;
  moves_.clear();
  for (std::uint32_t i = 0; i < shard_count(); ++i)
    if (alive(i))
      carry_out(i, shards_[i].memory->transfer_lost());
}

void batch_world::restart_transfer() {
  note("restart transfer");
  transfer_alive_ = true;
  for (std::uint32_t i = 0; i < shard_count(); ++i)
    if (alive(i))
      carry_out(i, shards_[i].memory->transfer_ready());
}

// Those of a former batcher that the compute stream was given before.
void batch_world::await_steps(std::uint32_t index) {
  shards_[index].steps_before = steps_.size();
  if (steps_.empty())
    carry_out(index, shards_[index].memory->steps_passed());
}

void batch_world::step_is_over() {
  for (std::uint32_t i = 0; i < shard_count(); ++i)
    if (shards_[i].steps_before > 0 && --shards_[i].steps_before == 0 && alive(i))
      carry_out(i, shards_[i].memory->steps_passed());
}

const step_plan& batch_world::plan() const {
  REQUIRE(step_running());
  return *steps_.front().plan;
}

void batch_world::start(const std::shared_ptr<const step_plan>& plan) {
  REQUIRE(compute_alive_);
  REQUIRE(plan->number > last_plan_);
  last_plan_ = plan->number;
  for (const auto& step : steps_)
    REQUIRE(step.batcher != batcher_); // one step in flight
  ++steps_started_;
  std::string line = "step " + std::to_string(plan->number) + ":";
  std::set<std::uint64_t> numbers;
  std::map<std::uint64_t, layout> layouts;
  REQUIRE(!plan->sequences.empty());
  REQUIRE(plan->tokens() <= config_.step_tokens);
  for (const auto& part : plan->sequences) {
    line += " " + name(part.id) + "@" + std::to_string(part.position) + "+" + std::to_string(part.tokens.size());
    REQUIRE(numbers.insert(part.id.number).second);
    session_record& s = sessions_.at(part.id.number);
    REQUIRE(s.request.id == part.id);
    REQUIRE(!s.ended());
    const auto held = follow(*plan, part);
    layouts.emplace(part.id.number, held);
    REQUIRE(part.evicted == held.evicted);
    REQUIRE(part.pages->size() * static_cast<std::size_t>(limits::page_tokens) >= static_cast<std::size_t>(part.position) + part.tokens.size());
    if (part.scores != attention_score::none) {
      REQUIRE(part.position == s.request.budget_tokens);
      REQUIRE_FALSE(part.sample);
      const auto reads_from = [&](int first) {
        for (std::size_t i = 0; i < part.tokens.size(); ++i)
          if (part.tokens[i] != s.tokens[static_cast<std::size_t>(held.token_at(first + static_cast<int>(i)))])
            return false;
        return true;
      };
      bool found = false;
      for (int first = 0; first + static_cast<int>(part.tokens.size()) <= part.position && !found; ++first)
        found = reads_from(first);
      REQUIRE(found);
      continue;
    }
    const auto end = static_cast<std::size_t>(part.position + part.evicted) + part.tokens.size();
    REQUIRE(end <= s.tokens.size());
    REQUIRE((s.request.budget_tokens == 0 || part.position + static_cast<int>(part.tokens.size()) <= s.request.budget_tokens));
    REQUIRE(std::equal(part.tokens.begin(), part.tokens.end(), s.tokens.begin() + part.position + part.evicted));
    REQUIRE(part.sample == (end == s.tokens.size() && s.request.max_new_tokens > 0));
    REQUIRE((part.sampling != nullptr) == part.sample);
    if (part.sample && part.sampling->penalises()) {
      std::map<token_id, std::pair<std::uint32_t, std::uint32_t>> expected, got;
      for (std::size_t i = 0; i < s.tokens.size(); ++i)
        ++(i < static_cast<std::size_t>(s.request.prompt_length) ? expected[s.tokens[i]].first : expected[s.tokens[i]].second);
      for (const auto& c : part.counts)
        got[c.token] = {c.in_prompt, c.in_answer};
      REQUIRE(got == expected);
      REQUIRE(part.counts.size() == expected.size());
    } else {
      REQUIRE(part.counts.empty());
    }
  }
  for (const auto& [lease, holder] : leases_)
    for (const auto& part : plan->sequences)
      if (part.id == holder.id && holder.granted && alive(holder.shard) && known_alive(holder.shard) &&
          shards_[holder.shard].memory->stats().leases > 0) // a test may have made it forget
        REQUIRE(shards_[holder.shard].memory->memory().stale_page(lease, *part.pages).value_or("") == "");
  // Whatever was cancelled before this step began has given its pages back.
  for (const auto& [lease, holder] : leases_)
    REQUIRE(!sessions_.at(holder.id.number).cancelled_at_step);
  note(line);
  steps_.push_back({plan, batcher_, std::move(layouts)});
  if (steps_.size() == 1)
    begin_writing(steps_.front());
}

// Where the part's tokens stand, once the plan's evictions are done: the same ones whenever its request comes to them.
batch_world::layout batch_world::follow(const step_plan& plan, const sequence_step& part) {
  layout& held = layouts_[part.id.number];
  for (const auto& c : plan.compactions) {
    if (c.id != part.id)
      continue;
    const auto [seen, first] = evictions_seen_.try_emplace({c.id.number, held.evictions}, c.kept);
    REQUIRE((first || seen->second == c.kept));
    layout next;
    for (const auto position : c.kept)
      next.held.push_back(held.token_at(position));
    next.evicted = held.evicted + session(c.id.number).request.budget_tokens - static_cast<int>(c.kept.size());
    next.evictions = held.evictions + 1;
    held = next;
  }
  if (part.evicted == 0)
    held = {};
  return held;
}

std::vector<std::uint64_t> batch_world::hashes(const sequence_step& part) const {
  std::vector<std::uint64_t> out;
  std::uint64_t h = beginning;
  for (const auto token : sessions_.at(part.id.number).tokens)
    out.push_back(h = append(h, token));
  return out;
}

// Every cell that the part sees holds the hash of all tokens up to its own. The answer is that of all before the part.
std::uint64_t batch_world::check_earlier(const running_step& step, const sequence_step& part) const {
  const auto& held = step.layouts.at(part.id.number);
  const auto after = hashes(part);
  for (int i = 0; i < part.position; ++i)
    if (i < part.window.sinks() || i >= part.window.hidden_end(part.position))
      REQUIRE(const_cast<batch_world*>(this)->cell(*part.pages, i) == after[static_cast<std::size_t>(held.token_at(i))]);
  const int before = part.position + part.evicted;
  return before == 0 ? beginning : after[static_cast<std::size_t>(before) - 1];
}

std::uint64_t& batch_world::cell(const page_table& pages, int position) {
  const auto page = pages.at(static_cast<std::size_t>(position / limits::page_tokens));
  return cells_.at(std::size_t{page} * static_cast<std::size_t>(limits::page_tokens) +
                   static_cast<std::size_t>(position % limits::page_tokens));
}

std::span<std::uint64_t> batch_world::cells_of(page_id page) {
  constexpr auto width = static_cast<std::size_t>(limits::page_tokens);
  return std::span(cells_).subspan(std::size_t{page} * width, width);
}

void batch_world::spoil_copies(const step_plan& plan) {
  for (const auto& copy : plan.copies)
    std::ranges::fill(cells_of(copy.to), garbage);
  for (const auto& c : plan.compactions)
    for (const auto page : *c.to)
      std::ranges::fill(cells_of(page), garbage);
}

void batch_world::begin_writing(const running_step& step) {
  const step_plan& plan = *step.plan;
  for (const auto& copy : plan.copies) {
    for (const auto& other : plan.copies)
      REQUIRE((copy.to != other.from && (copy.to != other.to || &copy == &other)));
    std::ranges::copy(cells_of(copy.from), cells_of(copy.to).begin());
  }
  for (const auto& c : plan.compactions) {
    std::vector<std::uint64_t> kept;
    for (const auto position : c.kept)
      kept.push_back(cell(*c.from, position));
    for (std::size_t i = 0; i < kept.size(); ++i)
      cell(*c.to, static_cast<int>(i)) = kept[i];
  }
  for (const auto& part : plan.sequences) {
    check_earlier(step, part);
    for (std::size_t i = 0; i < part.tokens.size(); ++i)
      cell(*part.pages, part.position + static_cast<int>(i)) = garbage - 1 - part.id.number;
  }
}

bool batch_world::end_step(const std::set<std::uint64_t>& faulty) {
  if (steps_.empty())
    return false;
  const auto step = steps_.front();
  step_result done;
  done.number = step.plan->number;
  for (const auto& part : step.plan->sequences) {
    std::uint64_t h = check_earlier(step, part);
    if (part.scores != attention_score::none) {
      sequence_result scored{part.id, {}, {}};
      if (faulty.contains(part.id.number)) {
        sessions_.at(part.id.number).may_fail = true;
        scored.fault = fail(errc::internal, "not a number");
      }
      for (int i = 0; i < part.position; ++i) // by what stands there
        scored.scores.push_back(static_cast<float>(uniform_at(cell(*part.pages, i), part.tokens.size())));
      done.sequences.push_back(std::move(scored));
      continue;
    }
    for (std::size_t i = 0; i < part.tokens.size(); ++i) {
      auto& written = cell(*part.pages, part.position + static_cast<int>(i));
      REQUIRE(written == garbage - 1 - part.id.number); // nobody else wrote it meanwhile
      written = h = append(h, part.tokens[i]);
    }
    sequence_result r{part.id, {}, {}};
    if (faulty.contains(part.id.number)) {
      sessions_.at(part.id.number).may_fail = true;
      r.fault = fail(errc::internal, "not a number");
    } else if (part.sample) {
      REQUIRE((part.tokens.empty() == (part.state != nullptr)));
      if (part.state)
        REQUIRE(name_of(*part.state) == h);
      r.token = sampled_token{choose(h, part.sampling->seed), 0, {}};
      if (part.keep_state)
        r.state = state_named(h);
    }
    done.sequences.push_back(std::move(r));
  }
  steps_.pop_front();
  note("done " + std::to_string(done.number));
  step_is_over();
  if (!steps_.empty())
    begin_writing(steps_.front());
  if (step.batcher == batcher_)
    carry_out(schedule_->step_done(done));
  return true;
}

bool batch_world::fail_step() {
  if (steps_.empty())
    return false;
  const auto step = steps_.front();
  steps_.pop_front();
  spoil_copies(*step.plan);
  step_is_over();
  note("fail " + std::to_string(step.plan->number));
  for (const auto& part : step.plan->sequences)
    sessions_.at(part.id.number).may_fail = true;
  if (!steps_.empty())
    begin_writing(steps_.front());
  if (step.batcher == batcher_)
    carry_out(schedule_->step_failed(step.plan->number, fail(errc::device_failed, "as the test wants")));
  return true;
}

void batch_world::run_until_idle(int steps_max) {
  pump();
  for (int i = 0; !schedule_->idle(); ++i) {
    REQUIRE(i < steps_max);
    REQUIRE(end_step()); // else it hangs
    pump();
    check();
  }
}

std::uint32_t batch_world::most_pages_until_idle() {
  std::uint32_t most = 0;
  pump();
  while (!schedule_->idle()) {
    REQUIRE(end_step());
    pump();
    check();
    most = std::max(most, memory(0).stats().used);
  }
  return most;
}

void batch_world::kill_shard(std::uint32_t index) {
  note("kill shard " + std::to_string(index));
  shards_[index].memory.reset();
  shards_[index].inbox.clear();
  for (auto& flight : moves_)
    flight.orphan = flight.orphan || flight.message.shard == index;
}

void batch_world::notice_lost(std::uint32_t index) {
  note("lost shard " + std::to_string(index));
  shards_[index].known = false;
  std::erase_if(leases_, [&](const auto& entry) { return entry.second.shard == index; });
  carry_out(schedule_->shard_lost(index));
}

void batch_world::restart_shard(std::uint32_t index) {
  shard_side& s = shards_[index];
  note("restart shard " + std::to_string(index));
  while (std::ranges::any_of(moves_, [&](const auto& f) { return f.orphan && f.message.shard == index; }))
    deliver_move(); // what was asked of the transfer stream before is over
  tier_config tiers = tiers_;
  for (std::size_t level = 0; level < tier_levels; ++level)
    tiers.index.first[level] = index * tiers.index.slots[level];
  s.memory = std::make_unique<tiered_shard>(
      tiered_shard_config{{index, s.first, config_.shard_pages[index], prefix_}, tiers});
  s.inbox.clear();
  s.known = true;
  if (transfer_alive_)
    carry_out(index, s.memory->transfer_ready());
  await_steps(index);
  carry_out(schedule_->shard_ready(index, s.memory->report()));
}

void batch_world::kill_compute() {
  note("kill compute");
  compute_alive_ = false;
  for (const auto& step : steps_)
    for (const auto& part : step.plan->sequences)
      sessions_.at(part.id.number).may_fail = true;
  if (!steps_.empty())
    spoil_copies(*steps_.front().plan);
  while (!steps_.empty()) {
    steps_.pop_front();
    step_is_over();
  }
  carry_out(schedule_->compute_lost());
}

void batch_world::restart_compute() {
  note("restart compute");
  compute_alive_ = true;
  carry_out(schedule_->compute_ready());
}

void batch_world::restart_batcher() {
  note("restart batcher");
  ++batcher_;
  last_plan_ = 0;
  leases_.clear();
  layouts_.clear();
  schedule_ = std::make_unique<batch_schedule>(config_);
  for (std::uint32_t i = 0; i < shard_count(); ++i) {
    shard_side& s = shards_[i];
    s.inbox.clear();
    s.outbox.clear();
    if (!s.memory)
      continue;
    s.memory->taken();
    await_steps(i);
    s.known = true;
    carry_out(schedule_->shard_ready(i, s.memory->report()));
  }
  if (compute_alive_)
    carry_out(schedule_->compute_ready());
  for (auto& [number, s] : sessions_) {
    if (s.ended())
      continue;
    ++s.request.id.generation;
    s.request.tokens = std::make_shared<const std::vector<token_id>>(s.tokens);
    s.first.reset();
    carry_out(schedule_->submit(s.request, now_));
  }
}

void batch_world::carry_out(batch_actions actions) {
  for (auto& action : actions) {
    const auto send = [&](auto& message) {
      REQUIRE(shards_.at(message.shard).known);
      if (alive(message.shard))
        shards_[message.shard].inbox.emplace_back(message);
    };
    if (auto* reserve = std::get_if<reserve_pages>(&action)) {
      note("reserve " + name(reserve->id) + " of " + std::to_string(reserve->shard));
      REQUIRE(leases_.try_emplace(reserve->lease, lease_record{reserve->id, reserve->shard, false}).second);
      asked_[reserve->id.number].push_back(reserve->shard);
      send(*reserve);
    } else if (auto* grow = std::get_if<grow_pages>(&action)) {
      send(*grow);
    } else if (auto* publish = std::get_if<publish_pages>(&action)) {
      send(*publish);
    } else if (auto* release = std::get_if<release_pages>(&action)) {
      note("release " + name(release->id));
      leases_.erase(release->lease);
      send(*release);
    } else if (auto* run = std::get_if<run_step>(&action)) {
      start(run->plan);
    } else if (auto* told = std::get_if<tokens_generated>(&action)) {
      hear(*told);
    } else if (auto* finished = std::get_if<request_finished>(&action)) {
      end(finished->id, *finished, {});
    } else {
      const auto& failed = std::get<request_failed>(action);
      end(failed.id, {}, failed);
    }
  }
  schedule_->check_invariants();
}

void batch_world::hear(const tokens_generated& told) {
  session_record& s = sessions_.at(told.id.number);
  REQUIRE(s.request.id == told.id);
  REQUIRE(!s.ended());
  REQUIRE(told.first == !s.first);
  if (told.first) {
    s.first = told;
    s.first_token_at_step = steps_started_;
  }
  REQUIRE(told.position == static_cast<int>(s.tokens.size())); // no gap, no repeat
  for (const auto& token : told.tokens)
    s.tokens.push_back(token.token);
  REQUIRE(told.usage.completion_tokens == s.generated());
}

void batch_world::end(request_id id, std::optional<request_finished> finished, std::optional<request_failed> failed) {
  session_record& s = sessions_.at(id.number);
  note((finished ? "finished " : "failed ") + name(id));
  if (s.request.id != id)
    return; // a former run
  REQUIRE(!s.ended());
  s.finished = std::move(finished);
  s.failed = std::move(failed);
  if (!s.finished || s.finished->reason == sequence_end::cancelled)
    return;
  auto original = s.request;
  original.tokens = std::make_shared<const std::vector<token_id>>(s.tokens.begin(), s.tokens.begin() + s.request.prompt_length);
  sequence_end reason = sequence_end::cancelled;
  token_id end_token = -1;
  REQUIRE(s.tokens == oracle(original, reason, end_token));
  REQUIRE(s.finished->reason == reason);
  REQUIRE(s.finished->end_token == end_token);
  REQUIRE(s.finished->usage.completion_tokens == s.generated() + (reason == sequence_end::end_token ? 1 : 0));
  REQUIRE(s.finished->usage.prompt_tokens == s.request.prompt_length);
}

std::vector<token_id> batch_world::oracle(const batch_request& r, sequence_end& reason, token_id& end_token) const {
  std::vector<token_id> tokens = *r.tokens;
  const auto smallest = *std::min_element(config_.shard_pages.begin(), config_.shard_pages.end());
  const int asked = r.prompt_length + r.max_new_tokens;
  const auto most =
      r.window.bounded() || r.budget_tokens > 0 ? asked : std::min({asked, r.context_tokens, static_cast<int>(smallest) * limits::page_tokens + 1});
  std::uint64_t h = beginning;
  for (const auto token : tokens)
    h = append(h, token);
  reason = sequence_end::length;
  end_token = -1;
  while (static_cast<int>(tokens.size()) < most) {
    const auto next = choose(h, r.sampling->seed);
    if (!r.ignore_eos && std::find(r.end_tokens.begin(), r.end_tokens.end(), next) != r.end_tokens.end()) {
      reason = sequence_end::end_token;
      end_token = next;
      break;
    }
    tokens.push_back(next);
    h = append(h, next);
  }
  return tokens;
}

void batch_world::check() {
  schedule_->check_invariants();
  for (const auto& s : shards_)
    if (s.memory)
      s.memory->check_invariants();
}

void batch_world::check_all_returned() {
  check();
  REQUIRE(schedule_->idle());
  REQUIRE(schedule_->releases_outstanding() == 0);
  for (const auto& s : shards_) {
    if (!s.memory)
      continue;
    const auto stats = s.memory->stats();
    REQUIRE(stats.leases == 0);
    REQUIRE(s.memory->quiet());
    REQUIRE(stats.used == 0);
    REQUIRE(stats.free + stats.cached == stats.pages);
  }
}

std::vector<std::uint32_t> batch_world::shards_asked(std::uint64_t number) const {
  const auto found = asked_.find(number);
  return found == asked_.end() ? std::vector<std::uint32_t>{} : found->second;
}

bool batch_world::has_lease(std::uint64_t number) const {
  return std::any_of(leases_.begin(), leases_.end(), [&](const auto& entry) { return entry.second.id.number == number; });
}

void batch_world::note(const std::string& line) {
  trace_ += line;
  trace_ += '\n';
}

} // namespace troupe::test
