#include "actors/worker/prompt_preparer.hpp"

#include <algorithm>
#include <exception>
#include <new>

#include "config/limits.hpp"

namespace troupe {

namespace {

error too_many(std::string_view what, std::size_t count, std::size_t limit) {
  return fail(errc::too_large,
              "the request has " + std::to_string(count) + " " + std::string(what) + "; at most " + std::to_string(limit));
}

prepared_prompt refuse(error fault) {
  prepared_prompt out;
  out.fault = std::move(fault);
  return out;
}

prepared_prompt render_chat(const runtime_context& context, const generation_request& request) {
  if (!context.chat)
    return refuse({errc::unsupported, "the model has no chat template; send a raw prompt instead"});
  render_options options;
  options.tools = request.tools;
  options.enable_thinking = request.enable_thinking;
  auto rendered = context.chat->render(request.messages, options);
  if (!rendered)
    return refuse(rendered.fault());
  prepared_prompt out;
  out.tokens = std::move(rendered->tokens);
  out.thinking_open = rendered->thinking_open;
  return out;
}

prepared_prompt encode_text(const tokenizer& tokens, std::string_view text) {
  prepared_prompt out;
  if (tokens.adds_bos() && tokens.bos() >= 0)
    out.tokens.push_back(tokens.bos());
  tokens.encode(text, out.tokens);
  if (out.tokens.empty() && tokens.bos() >= 0)
    out.tokens.push_back(tokens.bos());
  return out;
}

prepared_prompt check_ids(const tokenizer& tokens, const std::vector<token_id>& ids) {
  const auto bad = std::find_if(ids.begin(), ids.end(), [&](token_id id) { return id < 0 || id >= tokens.size(); });
  if (bad != ids.end())
    return refuse({errc::invalid_argument,
                   "prompt token " + std::to_string(*bad) + " is not in the vocabulary of " + std::to_string(tokens.size())});
  prepared_prompt out;
  out.tokens = ids;
  return out;
}

// A text that can't fit into the context, however well it compresses into tokens, is not worth tokenising.
result<void> check_size(const runtime_context& context, const generation_request& request) {
  std::size_t bytes = request.prompt ? request.prompt->size() : 0;
  for (const auto& message : request.messages)
    bytes += message.content.size();
  const auto most = static_cast<std::size_t>(context.context_tokens) * context.tokens->longest_token_bytes();
  if (bytes > most)
    return fail(errc::context_full, "the prompt has " + std::to_string(bytes) + " bytes; the model's context of " +
                                        std::to_string(context.context_tokens) + " tokens holds at most " +
                                        std::to_string(most));
  return {};
}

} // namespace

result<void> check_request(const generation_request& request) {
  const int inputs = static_cast<int>(!request.messages.empty()) + static_cast<int>(request.prompt.has_value()) +
                     static_cast<int>(!request.prompt_tokens.empty());
  if (inputs != 1)
    return fail(errc::invalid_argument, inputs == 0 ? "the request has neither messages nor a prompt"
                                                    : "the request has more than one of messages, prompt and prompt tokens");
  if (request.messages.size() > limits::messages_max)
    return too_many("messages", request.messages.size(), limits::messages_max);
  if (request.tools.size() > limits::tools_max)
    return too_many("tools", request.tools.size(), limits::tools_max);
  if (request.stop.size() > limits::stop_strings_max)
    return too_many("stop strings", request.stop.size(), limits::stop_strings_max);
  for (const auto& stop : request.stop)
    if (stop.size() > limits::stop_string_bytes_max)
      return too_many("bytes in a stop string", stop.size(), limits::stop_string_bytes_max);
  if (request.max_tokens && *request.max_tokens < 0)
    return fail(errc::invalid_argument, "max_tokens is " + std::to_string(*request.max_tokens) + "; it must not be negative");
  if (request.priority < -limits::priority_max || request.priority > limits::priority_max)
    return fail(errc::invalid_argument, "priority is " + std::to_string(request.priority) + "; it must lie within " +
                                            std::to_string(-limits::priority_max) + " and " +
                                            std::to_string(limits::priority_max));
  return {};
}

prepared_prompt render_prompt(const runtime_context& context, const generation_request& request) {
  try {
    if (auto fits = check_size(context, request); !fits)
      return refuse(fits.fault());
    auto out = !request.messages.empty() ? render_chat(context, request)
               : request.prompt          ? encode_text(*context.tokens, *request.prompt)
                                         : check_ids(*context.tokens, request.prompt_tokens);
    if (!out.fault && out.tokens.empty())
      return refuse({errc::invalid_argument, "the prompt is empty"});
    return out;
  } catch (const std::bad_alloc&) {
    return refuse({errc::no_memory, "the prompt is too large for this machine's memory"});
  } catch (const std::exception& e) {
    log_to(context.log, log_level::error, std::string("a prompt could not be prepared: ") + e.what());
    return refuse({errc::internal, "the prompt could not be prepared"});
  }
}

} // namespace troupe
