#include "app/child_server.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <sstream>
#include <utility>
#include <vector>

extern char** environ;

namespace troupe {

child_server::child_server(child_server&& other) noexcept { *this = std::move(other); }

child_server& child_server::operator=(child_server&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(output_, other.output_);
  std::swap(input_, other.input_);
  std::swap(url_, other.url_);
  return *this;
}

child_server::~child_server() {
  if (pid_ > 0) {
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
  }
  if (output_ >= 0)
    close(output_);
  if (input_ >= 0)
    close(input_);
}

result<child_server> child_server::start(const std::string& program, const settings& s) {
  settings own = s;
  own.server.port = 0;
  own.process.exit_with_parent = true;
  std::vector<std::string> arguments = {program, "serve"};
  std::istringstream lines(describe(own));
  for (std::string line; std::getline(lines, line);) {
    arguments.push_back("--set");
    arguments.push_back(line);
  }
  std::vector<char*> argv;
  for (auto& argument : arguments)
    argv.push_back(argument.data());
  argv.push_back(nullptr);

  int out[2];
  int in[2];
  if (pipe2(out, O_CLOEXEC) != 0)
    return fail(errc::io_failed, "cannot make a pipe");
  if (pipe2(in, O_CLOEXEC) != 0) {
    close(out[0]);
    close(out[1]);
    return fail(errc::io_failed, "cannot make a pipe");
  }
  child_server child;
  child.output_ = out[0];
  child.input_ = in[1];
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  const int code = posix_spawn(&child.pid_, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(out[1]);
  close(in[0]);
  if (code != 0) {
    child.pid_ = -1;
    return fail(errc::io_failed, "cannot start " + program);
  }
  std::string line;
  char c = 0;
  while (read(child.output_, &c, 1) == 1 && c != '\n')
    line += c;
  const auto at = line.find("\"url\":\"");
  if (at == std::string::npos)
    return fail(errc::io_failed, "the server ended before it was ready; its own message is above");
  const auto begin = at + 7;
  child.url_ = line.substr(begin, line.find('"', begin) - begin);
  return child;
}

} // namespace troupe
