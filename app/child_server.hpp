// A `troupe serve` of our own, run as a child: started with --port 0, known by its ready line, ended with its owner.
#pragma once
#include <string>

#include "base/result.hpp"
#include "config/settings.hpp"

namespace troupe {

class child_server {
public:
  child_server() = default;
  child_server(child_server&& other) noexcept;
  child_server& operator=(child_server&& other) noexcept;
  ~child_server(); // SIGTERM, then waits

  // Waits for the ready line; io_failed when the child ends before it.
  static result<child_server> start(const std::string& program, const settings& s);
  const std::string& url() const noexcept { return url_; }

private:
  int pid_ = -1;
  int output_ = -1; // the read end of its stdout
  int input_ = -1;  // closing it ends the child
  std::string url_;
};

} // namespace troupe
