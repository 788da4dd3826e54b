// `troupe serve`: opens the port at once (so that a host can watch /health while the model loads), loads the model, prints one
// ready line, and drains on SIGTERM, SIGINT or, where asked, when standard input closes.
#include <malloc.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cerrno>
#include <cstdlib>
#include <future>

#include "app/commands.hpp"
#include "app/engine.hpp"
#include "app/opening_port.hpp"
#include "io/server.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

// The signals that end the process, as a descriptor; blocked in every thread that starts later.
int blocked_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN); // a file that may not grow is an error of that write
  return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

// glibc raises the size from which it maps memory of its own with each such block that is freed; large requests would then come
// from its heaps, and stay there. Fixed, they go back to the system. Under a limit few heaps are to hold what is freed in pieces.
void tune_allocator(bool limited) {
  mallopt(M_MMAP_THRESHOLD, 256 << 10);
  if (limited)
    mallopt(M_ARENA_MAX, 2);
}

// Sleeps until a signal comes or, with_parent, standard input ends: false. Or until `ready`, where given, can be read: true.
bool wait_for_end(int signals, bool with_parent, int ready = -1) {
  pollfd watched[3] = {{signals, POLLIN, 0}, {with_parent ? 0 : -1, POLLIN, 0}, {ready, POLLIN, 0}};
  for (;;) {
    if (poll(watched, 3, -1) < 0 && errno != EINTR)
      return false;
    if (watched[0].revents)
      return false;
    char ignored[256];
    if (watched[1].revents && read(0, ignored, sizeof ignored) <= 0)
      return false;
    if (watched[2].revents)
      return true;
  }
}

edge_options edge_options_of(const settings& s) {
  edge_options options;
  options.host = s.server.host;
  options.port = s.server.port;
  options.threads = s.server.threads;
  options.connections_max = s.server.connections_max;
  options.send_queue_bytes_max = static_cast<std::size_t>(s.server.send_queue_kib_max) << 10;
  options.model_alias = s.model.alias;
  options.echo_route = s.server.echo_route;
  options.allowed_origins = s.server.allowed_origins;
  options.api_keys = s.server.api_keys;
  options.memory_limit = s.memory.limit;
  options.memory = share_memory(s.memory.limit);
  return options;
}

std::string json_escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '"' || c == '\\')
      out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20)
      out += c;
  }
  return out;
}

} // namespace

int serve_command(const settings& s) {
  tune_allocator(s.memory.limit != 0);
  const int signals = blocked_signals();
  const auto log = stderr_log(log_level::info);
  auto state = open_state(s, log);
  if (!state) {
    std::fprintf(stderr, "troupe serve: %s\n", state.fault().message.c_str());
    return 1;
  }
  opening_port port;
  auto options = edge_options_of(s);
  options.records = *state ? (*state)->records : nullptr;
  auto server = edge_server::start(std::move(options), port, log);
  if (!server) {
    std::fprintf(stderr, "troupe serve: %s\n", server.fault().message.c_str());
    return 1;
  }
  const int loaded = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  auto loading = std::async(std::launch::async, [&s, &log, &kept = *state, loaded] {
    auto made = start_engine(s, kept ? &*kept : nullptr, log);
    eventfd_write(loaded, 1);
    return made;
  });
  if (!wait_for_end(signals, s.process.exit_with_parent, loaded)) {
    log(log_level::info, "told to end while the model was loading");
    (*server)->stop(200ms);
    std::_Exit(0); // loading can't be interrupted, and there is nothing to lose yet
  }
  auto engine = loading.get();
  if (!engine) {
    std::fprintf(stderr, "troupe serve: %s\n", engine.fault().message.c_str());
    return 1;
  }
  port.open((*engine)->port());
  const auto host = s.server.host.find(':') == std::string::npos ? s.server.host : "[" + s.server.host + "]";
  const auto url = "http://" + host + ":" + std::to_string((*server)->port());
  std::printf("{\"event\":\"ready\",\"url\":\"%s\",\"port\":%d,\"model\":\"%s\",\"pid\":%d}\n", json_escaped(url).c_str(),
              (*server)->port(), json_escaped(s.model.alias.empty() ? port.model().name : s.model.alias).c_str(), static_cast<int>(getpid()));
  std::fflush(stdout);
  log(log_level::info, "open " + url + "/ in a browser; clients use " + url + "/v1");

  wait_for_end(signals, s.process.exit_with_parent);
  log(log_level::info, "draining");
  const auto deadline = std::chrono::milliseconds(s.process.shutdown_ms);
  const auto begun = std::chrono::steady_clock::now();
  (*server)->stop_accepting();
  (*engine)->drain(deadline * 7 / 10);
  const auto left = deadline * 9 / 10 - std::chrono::duration_cast<std::chrono::milliseconds>(
                                            std::chrono::steady_clock::now() - begun);
  (*server)->stop(std::max(left, 200ms));
  port.close();
  close(signals);
  return 0;
}

} // namespace troupe
