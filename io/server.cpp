#include "io/server.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <condition_variable>
#include <sys/resource.h>
#include <thread>

#include "io/edge_core.hpp"
#include "io/net/edge_loop.hpp"
#include "io/net/http_connection.hpp"

namespace troupe {
namespace {

constexpr std::chrono::milliseconds farewell(200); // for last words after the deadline
constexpr int accept_retry_seconds = 1;            // after the process ran out of descriptors

// A loop and the thread that runs it.
struct loop_thread {
  explicit loop_thread(edge_core& core) : loop(core), work(loop.context.get_executor()) {}

  void run(const log_sink& log) {
    for (;;) {
      try {
        loop.context.run();
        return;
      } catch (const std::exception& e) { // a defect in one handler ends neither the loop nor the process
        log_to(log, log_level::error, std::string("edge: ") + e.what());
      }
    }
  }

  edge_loop loop;
  asio::executor_work_guard<asio::io_context::executor_type> work;
  std::thread thread;
};

// Descriptors that are left for sockets when files, pipes and the like have had theirs.
int connections_that_fit(int wanted) {
  constexpr int reserved = 64;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return wanted;
  const auto room = static_cast<long long>(limit.rlim_cur) - reserved - limits::refused_connections_max;
  return static_cast<int>(std::max<long long>(1, std::min<long long>(wanted, room)));
}

class server final : public edge_server {
public:
  server(edge_options options, bool loopback, edge_port& runtime, log_sink log)
      : core_(std::move(options), loopback, runtime, std::move(log)),
        cap_(connections_that_fit(std::min(core_.options.connections_max, core_.options.memory.connections_max))) {
    for (int i = 0; i < std::max(1, core_.options.threads); ++i)
      loops_.push_back(std::make_unique<loop_thread>(core_));
    acceptor_.emplace(loops_[0]->loop.context);
    retry_.emplace(loops_[0]->loop.context);
  }

  ~server() override { stop(std::chrono::milliseconds(0)); }

  result<void> listen(const tcp::endpoint& endpoint) {
    error_code ec;
    acceptor_->open(endpoint.protocol(), ec);
    if (!ec)
      acceptor_->set_option(asio::socket_base::reuse_address(true), ec);
    if (!ec)
      acceptor_->bind(endpoint, ec);
    if (!ec)
      acceptor_->listen(asio::socket_base::max_listen_connections, ec);
    if (!ec)
      port_ = acceptor_->local_endpoint(ec).port();
    if (ec)
      return fail(errc::io_failed, "cannot listen on " + core_.options.host + " port " + std::to_string(core_.options.port) +
                                       ": " + ec.message());
    if (const int wanted = std::min(core_.options.connections_max, core_.options.memory.connections_max); cap_ < wanted)
      log_to(core_.log, log_level::warning,
             "edge: at most " + std::to_string(cap_) + " connections, since the process may not open more files (ulimit -n)");
    accept();
    for (auto& each : loops_)
      each->thread = std::thread([this, loop = each.get()] { loop->run(core_.log); });
    return {};
  }

  int port() const noexcept override { return port_; }
  int connections() const noexcept override { return static_cast<int>(core_.counters.connections.load()); }

  void stop_accepting() override {
    if (core_.draining.exchange(true))
      return;
    asio::post(loops_[0]->loop.context, [this] {
      error_code ignored;
      acceptor_->close(ignored);
      retry_->cancel();
    });
    for (auto& each : loops_)
      asio::post(each->loop.context, [loop = &each->loop] { loop->drain_all(); });
  }

  void stop(std::chrono::milliseconds deadline) override {
    if (stopped_)
      return;
    stopped_ = true;
    stop_accepting();
    if (!wait_until_empty(deadline)) { // who waits still is told that the answer ends here
      for (auto& each : loops_)
        asio::post(each->loop.context, [loop = &each->loop] { loop->cancel_all(); });
      wait_until_empty(farewell);
    }
    for (auto& each : loops_)
      asio::post(each->loop.context, [loop = &each->loop] { loop->abort_all(); });
    for (auto& each : loops_)
      each->work.reset();
    wait_until_empty(farewell);
    for (auto& each : loops_)
      each->loop.context.stop();
    for (auto& each : loops_)
      if (each->thread.joinable())
        each->thread.join();
  }

private:
  void accept() {
    edge_loop& target = loops_[next_++ % loops_.size()]->loop;
    acceptor_->async_accept(target.context, [this, &target](error_code ec, tcp::socket socket) {
      if (ec == asio::error::operation_aborted || core_.draining)
        return;
      if (!ec)
        admit(target, std::move(socket));
      if (ec == asio::error::no_descriptors || ec == boost::system::errc::too_many_files_open_in_system ||
          ec == asio::error::no_buffer_space || ec == asio::error::no_memory)
        return accept_later(ec);
      accept();
    });
  }

  // The queue of the kernel holds who knocks meanwhile; trying again at once would spin.
  void accept_later(error_code why) {
    log_to(core_.log, log_level::warning, "edge: cannot accept: " + why.message());
    retry_->expires_after(std::chrono::seconds(accept_retry_seconds));
    retry_->async_wait([this](error_code ec) {
      if (!ec && !core_.draining)
        accept();
    });
  }

  void admit(edge_loop& target, tcp::socket socket) {
    const std::int64_t open = ++core_.counters.connections;
    ++core_.counters.connections_total;
    const bool over_cap = open > cap_;
    if (over_cap)
      ++core_.counters.connections_refused_total;
    if (open > cap_ + limits::refused_connections_max) {
      core_.connection_ended();
      return; // the socket closes here
    }
    asio::post(target.context, [&target, over_cap, accepted = std::move(socket)]() mutable {
      start_http_connection(target, std::move(accepted), over_cap);
    });
  }

  bool wait_until_empty(std::chrono::milliseconds deadline) {
    const auto until = std::chrono::steady_clock::now() + deadline;
    std::unique_lock lock(core_.empty_mutex);
    return core_.empty.wait_until(lock, until, [this] { return core_.counters.connections.load() <= 0; });
  }

  edge_core core_;
  const std::int64_t cap_;
  std::vector<std::unique_ptr<loop_thread>> loops_;
  std::optional<tcp::acceptor> acceptor_; // on the first loop
  std::optional<asio::steady_timer> retry_;
  std::size_t next_ = 0;
  int port_ = 0;
  bool stopped_ = false;
};

result<tcp::endpoint> resolve(const edge_options& options) {
  std::string host = options.host;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  error_code ec;
  asio::io_context context;
  tcp::resolver resolver(context);
  const auto found =
      resolver.resolve(host, std::to_string(options.port), tcp::resolver::numeric_service | tcp::resolver::passive, ec);
  if (ec || found.empty())
    return fail(errc::invalid_argument, "cannot resolve host '" + options.host + "': " + ec.message());
  return found.begin()->endpoint();
}

} // namespace

result<std::unique_ptr<edge_server>> edge_server::start(edge_options options, edge_port& runtime, log_sink log) {
  if (options.port < 0 || options.port > 65535)
    return fail(errc::invalid_argument, "port must be between 0 and 65535, not " + std::to_string(options.port));
  if (options.host.empty())
    return fail(errc::invalid_argument, "host must not be empty; 0.0.0.0 is any address");
  try {
    const auto endpoint = resolve(options);
    if (!endpoint)
      return endpoint.fault();
    const bool loopback = endpoint->address().is_loopback();
    if (!loopback && options.api_keys.empty())
      return fail(errc::invalid_argument,
                  "host " + options.host +
                      " can be reached from other machines, so an API key is required; set one or use 127.0.0.1");
    auto made = std::make_unique<server>(std::move(options), loopback, runtime, std::move(log));
    if (auto listening = made->listen(*endpoint); !listening)
      return listening.fault();
    return std::unique_ptr<edge_server>(std::move(made));
  } catch (const std::exception& e) {
    return fail(errc::io_failed, std::string("cannot start the edge: ") + e.what());
  }
}

} // namespace troupe
