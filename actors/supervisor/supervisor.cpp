#include "actors/supervisor/supervisor.hpp"

#include "actors/batcher/batcher.hpp"
#include "actors/compute_stream/compute_stream.hpp"
#include "actors/edge_bridge/edge_bridge.hpp"
#include "actors/kv_shard/kv_shard.hpp"
#include "actors/metrics/metrics.hpp"
#include "actors/support/actor_support.hpp"
#include "actors/transfer_stream/transfer_stream.hpp"
#include "actors/worker/worker.hpp"

namespace troupe {

namespace {

using self_pointer = supervisor_own::stateful_pointer<supervisor_state>;

constexpr auto stop_recheck = std::chrono::milliseconds(10);

// Calls visit(member) with the named post of the company.
template <class Company, class Visitor>
void at_post(Company& all, actor_kind kind, std::uint32_t index, Visitor visit) {
  switch (kind) {
  case actor_kind::metrics: return visit(all.metrics);
  case actor_kind::kv_shard: return visit(all.shards.at(index));
  case actor_kind::compute_stream: return visit(all.compute);
  case actor_kind::transfer_stream: return visit(all.transfer);
  case actor_kind::worker: return visit(all.workers.at(index));
  case actor_kind::batcher: return visit(all.batcher);
  case actor_kind::edge_bridge: return visit(all.bridge);
  case actor_kind::session: return;
  }
}

template <class Visitor>
void each_post(const company& all, Visitor visit) {
  visit(actor_kind::metrics, 0u);
  for (std::uint32_t i = 0; i < all.shards.size(); ++i)
    visit(actor_kind::kv_shard, i);
  visit(actor_kind::compute_stream, 0u);
  visit(actor_kind::transfer_stream, 0u);
  for (std::uint32_t i = 0; i < all.workers.size(); ++i)
    visit(actor_kind::worker, i);
  visit(actor_kind::batcher, 0u);
  visit(actor_kind::edge_bridge, 0u);
}

template <class Handle>
void install(self_pointer self, actor_kind kind, std::uint32_t index, member<Handle>& post, Handle handle) {
  self->monitor(handle);
  self->state.members[handle.address()] = {kind, index};
  post.handle = std::move(handle);
  ++post.incarnation;
}

void start_member(self_pointer self, actor_kind kind, std::uint32_t index) {
  auto& all = self->state.now;
  const auto& parts = self->state.parts;
  const auto& context = parts.context;
  switch (kind) {
  case actor_kind::metrics: return install(self, kind, index, all.metrics, self->spawn(metrics, context));
  case actor_kind::kv_shard:
    return install(self, kind, index, all.shards.at(index), self->spawn(kv_shard, context, parts.shards.at(index)));
  case actor_kind::compute_stream:
    return install(self, kind, index, all.compute,
                   parts.threads ? self->spawn<caf::detached>(compute_stream, context, parts.slot)
                                 : self->spawn(compute_stream, context, parts.slot));
  case actor_kind::transfer_stream:
    if (!parts.store)
      return;
    return install(self, kind, index, all.transfer,
                   parts.threads ? self->spawn<caf::detached>(transfer_stream, context, parts.slot, parts.store)
                                 : self->spawn(transfer_stream, context, parts.slot, parts.store));
  case actor_kind::worker:
    return install(self, kind, index, all.workers.at(index),
                   parts.threads ? self->spawn<caf::detached>(worker, context) : self->spawn(worker, context));
  case actor_kind::batcher: return install(self, kind, index, all.batcher, self->spawn(batcher, context, parts.schedule));
  case actor_kind::edge_bridge: {
    install(self, kind, index, all.bridge, self->spawn(edge_bridge, context));
    for (const auto& [number, watched] : self->state.sessions)
      self->send(all.bridge.handle, adopt_session{number, watched.session});
    return;
  }
  case actor_kind::session: return;
  }
}

// Tells everybody of the company as it is now.
void publish(self_pointer self) {
  auto& state = self->state;
  ++state.now.version;
  const auto peers = std::make_shared<const company>(state.now);
  const peers_changed news{peers};
  for (const auto& shard : peers->shards)
    if (shard.alive())
      self->send(shard.handle, news);
  if (peers->batcher.alive())
    self->send(peers->batcher.handle, news);
  if (peers->bridge.alive())
    self->send(peers->bridge.handle, news);
  for (const auto& [number, watched] : state.sessions)
    self->send(watched.session, news);
  state.parts.front->publish(peers);
}

void end_sessions(self_pointer self) {
  auto& state = self->state;
  for (auto& [number, watched] : state.sessions)
    if (!std::exchange(watched.told_to_end, true))
      self->send(watched.session, end_session{state.ending});
}

bool no_more_work(const supervisor_state& state) {
  return state.stopping || !state.policy.failing().empty();
}

// Members end only after the sessions, so that what a session still tells is heard.
void continue_stop(self_pointer self) {
  auto& state = self->state;
  if (!state.stopping || !state.sessions.empty())
    return;
  if (state.members.empty()) {
    if (!state.parts.front->open().empty()) { // a session that was just opened will tell of itself; look again
      self->delayed_send(self, stop_recheck, stop_company{state.ending});
      return;
    }
    state.now = {}; // no cycle of handles outlives the company
    self->quit();
    return;
  }
  each_post(state.now, [&](actor_kind kind, std::uint32_t index) {
    at_post(state.now, kind, index, [&](auto& post) {
      if (post.alive())
        self->send_exit(post.handle, caf::exit_reason::user_shutdown);
      post.handle = nullptr;
    });
  });
}

void member_died(self_pointer self, supervisor_state::post post, const caf::error& reason) {
  auto& state = self->state;
  at_post(state.now, post.kind, post.index, [](auto& m) { m.handle = nullptr; });
  if (state.stopping)
    return continue_stop(self);

  log_to(state.parts.context->log, log_level::warning,
         std::string(name_of(post.kind)) + " " + std::to_string(post.index) + " died: " + self->system().render(reason));
  const auto decision = state.policy.died(post.kind, post.index, state.parts.context->clock());
  if (decision.escalate) {
    state.ending = {errc::unavailable, "the service is failing: " + state.policy.failing()};
    state.parts.front->set_health(health_state::failing, state.policy.failing());
    log_to(state.parts.context->log, log_level::error, state.ending.message);
    publish(self);
    end_sessions(self);
    return;
  }
  if (decision.delay.count() == 0) {
    start_member(self, post.kind, post.index);
  } else {
    std::uint32_t incarnation = 0;
    at_post(state.now, post.kind, post.index, [&](const auto& m) { incarnation = m.incarnation; });
    self->delayed_send(self, decision.delay, restart_due{post.kind, post.index, incarnation});
  }
  publish(self);
  if (state.now.metrics.alive())
    self->send(state.now.metrics.handle, actor_died{post.kind});
}

void session_died(self_pointer self, std::uint64_t number, const caf::error& reason) {
  auto& state = self->state;
  state.sessions.erase(number);
  if (state.now.bridge.alive())
    self->send(state.now.bridge.handle, session_closed{number});
  if (reason && reason != caf::exit_reason::normal) {
    log_to(state.parts.context->log, log_level::warning,
           "session " + std::to_string(number) + " died: " + self->system().render(reason));
    if (state.now.batcher.alive())
      self->send(state.now.batcher.handle, session_lost{number});
    if (state.now.metrics.alive())
      self->send(state.now.metrics.handle, actor_died{actor_kind::session});
  }
  continue_stop(self);
}

void on_down(self_pointer self, const caf::down_msg& news) {
  auto& state = self->state;
  if (const auto at = state.numbers.find(news.source); at != state.numbers.end()) {
    const auto number = at->second;
    state.numbers.erase(at);
    return session_died(self, number, news.reason);
  }
  if (const auto at = state.members.find(news.source); at != state.members.end()) {
    const auto post = at->second;
    state.members.erase(at);
    member_died(self, post, news.reason);
  }
}

void watch_session(self_pointer self, const session_opened& news) {
  auto& state = self->state;
  const auto session = caf::actor_cast<session_actor>(self->current_sender());
  self->monitor(session);
  state.numbers[session.address()] = news.number;
  state.sessions[news.number] = {session, false};
  if (no_more_work(state))
    return end_sessions(self);
  if (news.company_version == state.now.version)
    return;
  const auto peers = state.parts.front->peers();
  self->send(session, peers_changed{peers});
  if (peers->bridge.alive())
    self->send(peers->bridge.handle, adopt_session{news.number, session});
}

void kill(self_pointer self, const kill_actor& ask) {
  auto& state = self->state;
  if (ask.kind == actor_kind::session) {
    if (const auto at = state.sessions.find(ask.index); at != state.sessions.end())
      self->send_exit(at->second.session, caf::exit_reason::kill);
    return;
  }
  at_post(state.now, ask.kind, static_cast<std::uint32_t>(ask.index),
          [self](const auto& m) { self->send_exit(m.handle, caf::exit_reason::kill); });
}

} // namespace

supervisor_own::behavior_type supervisor(self_pointer self, company_parts parts) {
  settle_in(self, parts.context);
  auto& state = self->state;
  state.parts = std::move(parts);
  state.now.supervisor = self;
  state.now.shards.resize(state.parts.shards.size());
  state.now.workers.resize(state.parts.workers);
  self->set_down_handler([self](const caf::down_msg& news) { on_down(self, news); });
  each_post(state.now, [self](actor_kind kind, std::uint32_t index) { start_member(self, kind, index); });
  publish(self);
  state.parts.front->set_health(health_state::ready, "");
  return {
      [self](const session_opened& news) { watch_session(self, news); },
      [self](const kill_actor& ask) { kill(self, ask); },
      [self](const stop_company& ask) {
        self->state.stopping = true;
        self->state.ending = ask.fault;
        end_sessions(self);
        continue_stop(self);
      },
      [self](const restart_due& due) {
        auto& now = self->state;
        if (no_more_work(now))
          return;
        start_member(self, due.kind, due.index);
        publish(self);
      },
  };
}

} // namespace troupe
