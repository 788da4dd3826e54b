// The edge in front of the fake runtime: what the end-to-end tests run against when they test the edge alone.
// fake_server [port=N] [key=K] [connections=N] [queue_kib=N] [threads=N] [host=H]: prints {"port":N} and serves until SIGTERM.
#include <csignal>
#include <cstdio>
#include <iostream>
#include <string>

#include "io/server.hpp"
#include "tests/support/fake_port.hpp"

int main(int argc, char** argv) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  troupe::testing::fake_port port;
  troupe::edge_options options;
  options.port = 0;
  options.echo_route = true;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const std::size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : argument.substr(equals + 1);
    if (name == "port")
      options.port = std::stoi(value);
    else if (name == "key")
      options.api_keys.push_back(value);
    else if (name == "connections")
      options.connections_max = std::stoi(value);
    else if (name == "queue_kib")
      options.send_queue_bytes_max = std::stoul(value) << 10;
    else if (name == "threads")
      options.threads = std::stoi(value);
    else if (name == "host")
      options.host = value;
  }
  auto server =
      troupe::edge_server::start(options, port, [](troupe::log_level, std::string_view line) { std::cerr << line << "\n"; });
  if (!server) {
    std::cerr << server.fault().message << "\n";
    return 1;
  }
  std::printf("{\"port\":%d}\n", (*server)->port());
  std::fflush(stdout);
  int caught = 0;
  sigwait(&signals, &caught);
  (*server)->stop(std::chrono::milliseconds(3000));
}
