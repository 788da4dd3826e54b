// The command line. Reads settings from file, environment and flags, then hands over to a subcommand.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <fstream>
#include <iterator>

#include "app/commands.hpp"
#include "config/limits.hpp"
#include "model/chat_template.hpp"

namespace {

using namespace troupe;

// What `serve`, `chat` and `bench` share.
struct setting_flags {
  std::string config;
  std::vector<std::string> overrides;
  std::string model, alias, chat_template, host;
  int port = -1;
  int threads = -1;
  bool exit_with_parent = false;
};

void add_setting_flags(CLI::App& command, setting_flags& flags) {
  command.add_option("--config", flags.config, "settings file (YAML)")->check(CLI::ExistingFile);
  command.add_option("--set", flags.overrides, "one setting: section.key=value; may be repeated");
  command.add_option("--model", flags.model, "a GGUF file or a Hugging Face folder");
  command.add_option("--alias", flags.alias, "the model's name for clients");
  command.add_option("--chat-template", flags.chat_template, template_names());
  command.add_option("--threads", flags.threads, "compute threads; 0: the cores of this process")
      ->check(CLI::Range(0, limits::cpu_threads_max));
}

result<settings> read_settings(const setting_flags& flags) {
  settings s;
  if (!flags.config.empty()) {
    std::ifstream in(flags.config);
    const std::string text(std::istreambuf_iterator<char>(in), {});
    if (!in.good() && !in.eof())
      return fail(errc::io_failed, flags.config + ": cannot be read");
    if (auto done = apply_yaml(s, text); !done)
      return fail(done.fault().code, flags.config + ": " + done.fault().message);
  }
  if (auto done = apply_environment(s); !done)
    return done.fault();
  std::vector<std::string> lines = flags.overrides;
  const auto flag = [&](const char* name, const std::string& value) {
    if (!value.empty())
      lines.push_back(std::string(name) + "=" + value);
  };
  flag("model.path", flags.model);
  flag("model.alias", flags.alias);
  flag("model.chat_template", flags.chat_template);
  flag("server.host", flags.host);
  if (flags.port >= 0)
    flag("server.port", std::to_string(flags.port));
  if (flags.threads >= 0)
    flag("cpu.threads", std::to_string(flags.threads));
  if (flags.exit_with_parent)
    flag("process.exit_with_parent", "true");
  for (const auto& line : lines)
    if (auto done = apply_override(s, line); !done)
      return done.fault();
  return s;
}

template <class Run>
int with_settings(const setting_flags& flags, Run run) {
  const auto s = read_settings(flags);
  if (!s) {
    std::fprintf(stderr, "troupe: %s\n", s.fault().message.c_str());
    return 2;
  }
  return run(*s);
}

// What was printed may not have arrived: a full disk, a closed pipe.
int with_output(int status) {
  if (std::fflush(stdout) == 0 && !std::ferror(stdout))
    return status;
  std::fprintf(stderr, "troupe: standard output could not be written\n");
  return status == 0 ? 1 : status;
}

int run(int argc, char** argv) {
  CLI::App app{"Troupe serves a language model to many chats at once, as a company of actors."};
  app.require_subcommand(1);
  setting_flags flags;

  auto* serve = app.add_subcommand("serve", "serve a model over HTTP and WebSocket, with a chat page");
  add_setting_flags(*serve, flags);
  serve->add_option("--host", flags.host, "address to listen on (127.0.0.1)");
  serve->add_option("--port", flags.port, "port (8000); 0: any free one, told on the ready line")->check(CLI::Range(0, 65535));
  serve->add_flag("--exit-with-parent", flags.exit_with_parent, "end when standard input closes");
  bool show = false;
  serve->add_flag("--show-settings", show, "print every setting with its value and end");

  auto* chat = app.add_subcommand("chat", "chat in the terminal");
  add_setting_flags(*chat, flags);
  chat_options chat_with;
  chat->add_option("--url", chat_with.url, "a running server; without it the model runs in this process");
  chat->add_option("--key", chat_with.key, "the server's API key");
  chat->add_option("--system", chat_with.system, "system message");
  chat->add_option("--max-tokens", chat_with.max_tokens, "longest answer")->check(CLI::Range(1, 1 << 20));
  chat->add_option("--temperature", chat_with.temperature, "0: greedy")->check(CLI::Range(0.0, static_cast<double>(limits::temperature_max)));
  bool think = false, no_think = false;
  auto* with_think = chat->add_flag("--think", think, "with a think block, where the model has one");
  chat->add_flag("--no-think", no_think, "without a think block")->excludes(with_think);

  auto* bench = app.add_subcommand("bench", "measure a running server, or one that it starts");
  add_setting_flags(*bench, flags);
  bench_options measure;
  bench->add_option("--url", measure.url, "a running server; without it one is started with these settings");
  bench->add_option("--key", measure.key, "the server's API key");
  bench->add_option("--json", measure.json, "write the figures to this file too");
  bench->add_option("--concurrency", measure.concurrency, "requests at once")->check(CLI::Range(1, 1024));
  bench->add_option("--requests", measure.requests, "requests in all")->check(CLI::Range(1, 1'000'000));
  bench->add_option("--prompt-tokens", measure.prompt_tokens, "length of a prompt, in words")->check(CLI::Range(1, 100'000));
  bench->add_option("--max-tokens", measure.max_tokens, "tokens an answer")->check(CLI::Range(1, 100'000));
  bench->add_option("--seed", measure.seed, "of the prompts");

  auto* inspect = app.add_subcommand("inspect", "print what a model file holds");
  std::string inspected;
  inspect->add_option("model", inspected, "a GGUF file or a Hugging Face folder")->required();

  auto* tokenize = app.add_subcommand("tokenize", "print the token ids of a text");
  tokenize_options cut;
  std::string cut_model;
  tokenize->add_option("--model", cut_model, "a GGUF file or a Hugging Face folder")->required();
  tokenize->add_option("text", cut.text, "the text; -: standard input")->required();
  tokenize->add_flag("--special", cut.special, "read control tokens such as <|im_end|> in the text");
  tokenize->add_flag("--count", cut.count, "print only how many");

  auto* convert = app.add_subcommand("convert", "write a model as GGUF");
  convert_options converted;
  std::string from, to;
  convert->add_option("from", from, "a GGUF file or a Hugging Face folder")->required();
  convert->add_option("to", to, "the GGUF file to write")->required();
  convert->add_option("--type", converted.type, "weight type: f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1, q4_k, q5_k, q6_k");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }

  if (*serve)
    return with_settings(flags, [&](const settings& s) {
      if (!show)
        return serve_command(s);
      std::fputs(describe(s).c_str(), stdout);
      return 0;
    });
  if (*chat) {
    chat_with.thinking = think ? 1 : no_think ? 0 : -1;
    return with_settings(flags, [&](const settings& s) { return chat_command(s, chat_with); });
  }
  if (*bench)
    return with_settings(flags, [&](const settings& s) { return bench_command(s, measure, "/proc/self/exe"); });
  if (*inspect)
    return inspect_command(inspected);
  if (*tokenize) {
    cut.model = cut_model;
    return tokenize_command(cut);
  }
  converted.from = from;
  converted.to = to;
  return convert_command(converted);
}

} // namespace

int main(int argc, char** argv) { return with_output(run(argc, argv)); }
