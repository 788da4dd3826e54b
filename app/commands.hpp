// The subcommands of `troupe`. Each returns the process's exit code and reports failures as one line on stderr.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "config/settings.hpp"

namespace troupe {

int serve_command(const settings& s);

struct chat_options {
  std::string url;     // a running server; empty: the model runs in this process
  std::string key;
  std::string system;
  int max_tokens = 1024;
  double temperature = -1;
  int thinking = -1;
};
int chat_command(const settings& s, const chat_options& options);

struct bench_options {
  std::string url;     // empty: starts a server of its own with the settings
  std::string key;
  std::string json;    // also write the figures there
  int concurrency = 10;
  int requests = 100;
  int prompt_tokens = 64; // about, in words
  int max_tokens = 48;
  int seed = 1;
};
int bench_command(const settings& s, const bench_options& options, const std::string& program);

int inspect_command(const std::filesystem::path& model);

struct tokenize_options {
  std::filesystem::path model;
  std::string text;    // "-": standard input
  bool special = false; // match added tokens in the text
  bool count = false;
};
int tokenize_command(const tokenize_options& options);

struct convert_options {
  std::filesystem::path from, to;
  std::string type; // empty: as stored
};
int convert_command(const convert_options& options);

} // namespace troupe
