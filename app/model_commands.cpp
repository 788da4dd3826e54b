// inspect, tokenize, convert: the commands that look at a model file without running it.
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <iterator>

#include "app/commands.hpp"
#include "model/convert.hpp"
#include "model/model_file.hpp"
#include "model/model_file_inspect.hpp"
#include "model/tokenizer.hpp"
#include "model/weight_types.hpp"

namespace troupe {
namespace {

int report(const char* command, const error& e) {
  std::fprintf(stderr, "troupe %s: %s\n", command, e.message.c_str());
  return 1;
}

} // namespace

int inspect_command(const std::filesystem::path& model) {
  const auto file = open_model(model);
  if (!file)
    return report("inspect", file.fault());
  std::fputs(inspect_text(*file).c_str(), stdout);
  return 0;
}

int tokenize_command(const tokenize_options& options) {
  auto file = open_model(options.model);
  if (!file)
    return report("tokenize", file.fault());
  const auto tokens = tokenizer::build(std::move(file->tokenizer));
  if (!tokens)
    return report("tokenize", tokens.fault());
  std::string text = options.text;
  if (text == "-")
    text.assign(std::istreambuf_iterator<char>(std::cin), {});
  const auto ids = options.special ? (*tokens)->encode_with_added_tokens(text) : (*tokens)->encode(text);
  if (options.count) {
    std::printf("%zu\n", ids.size());
    return 0;
  }
  for (std::size_t i = 0; i < ids.size(); ++i)
    std::printf("%s%d", i ? " " : "", ids[i]);
  std::printf("\n");
  return 0;
}

int convert_command(const convert_options& options) {
  std::optional<weight_type> type;
  if (!options.type.empty()) {
    type = weight_type_named(options.type);
    if (!type)
      return report("convert", {errc::invalid_argument, "unknown weight type '" + options.type + "'"});
  }
  const bool terminal = isatty(STDERR_FILENO) != 0;
  const auto done = convert_to_gguf(options.from, options.to, type, [terminal](std::uint64_t bytes, std::uint64_t total) {
    if (terminal)
      std::fprintf(stderr, "\r%3.0f%%", 100.0 * static_cast<double>(bytes) / static_cast<double>(total));
  });
  if (terminal)
    std::fprintf(stderr, "\n");
  if (!done)
    return report("convert", done.fault());
  std::printf("%s\n", options.to.c_str());
  return 0;
}

} // namespace troupe
