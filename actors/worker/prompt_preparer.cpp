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
  const bool cut = request.overflow.value_or(context.overflow) != overflow_policy::refuse;
  const auto tokens = static_cast<std::size_t>(context.context_tokens) * (cut ? limits::overflow_contexts_max : 1);
  const auto most = tokens * context.tokens->longest_token_bytes();
  if (bytes > most)
    return fail(errc::context_full, "the prompt has " + std::to_string(bytes) + " bytes; the model's context of " +
                                        std::to_string(context.context_tokens) + " tokens holds at most " +
                                        std::to_string(most));
  return {};
}

// Room for what comes behind a known beginning, so that the buffer is not copied for it. Text has fewer tokens than bytes.
std::size_t tokens_expected(const std::vector<chat_message>& messages, std::size_t first) {
  constexpr std::size_t around_a_message = 16;
  std::size_t expected = around_a_message; // the answer's opening
  for (std::size_t i = first; i < messages.size(); ++i)
    expected += messages[i].content.size() + around_a_message;
  return expected;
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
  if (request.context_tokens && *request.context_tokens < 1)
    return fail(errc::invalid_argument, "context_tokens is " + std::to_string(*request.context_tokens) + "; it must be positive");
  if (request.max_tokens && *request.max_tokens < 0)
    return fail(errc::invalid_argument, "max_tokens is " + std::to_string(*request.max_tokens) + "; it must not be negative");
  if (request.priority < -limits::priority_max || request.priority > limits::priority_max)
    return fail(errc::invalid_argument, "priority is " + std::to_string(request.priority) + "; it must lie within " +
                                            std::to_string(-limits::priority_max) + " and " +
                                            std::to_string(limits::priority_max));
  return {};
}

prompt_preparer::prompt_preparer(context_ptr context) : context_(std::move(context)) {
  if (context_->history && context_->chat)
    history_.emplace(context_->history->bytes_max);
}

prompt_preparer::~prompt_preparer() {
  if (history_)
    history_->clear();
  show_history();
}

prepared_prompt prompt_preparer::prepare(const generation_request& request) {
  try {
    if (auto fits = check_size(*context_, request); !fits)
      return refuse(fits.fault());
    auto out = !request.messages.empty() ? render_chat(request)
               : request.prompt          ? encode_text(*context_->tokens, *request.prompt)
                                         : check_ids(*context_->tokens, request.prompt_tokens);
    if (!out.fault && out.tokens.empty())
      return refuse({errc::invalid_argument, "the prompt is empty"});
    return out;
  } catch (const std::bad_alloc&) {
    return start_again({errc::no_memory, "the prompt is too large for this machine's memory"});
  } catch (const std::exception& e) {
    log_to(context_->log, log_level::error, std::string("a prompt could not be prepared: ") + e.what());
    return start_again({errc::internal, "the prompt could not be prepared"});
  }
}

prepared_prompt prompt_preparer::render_chat(const generation_request& request) {
  if (!context_->chat)
    return refuse({errc::unsupported, "the model has no chat template; send a raw prompt instead"});
  render_options options;
  options.tools = request.tools;
  options.enable_thinking = request.enable_thinking;
  auto rendered = history_ ? render_on(request, options) : context_->chat->render(request.messages, options);
  if (!rendered)
    return refuse(rendered.fault());
  prepared_prompt out;
  out.tokens = std::move(rendered->tokens);
  out.thinking_open = rendered->thinking_open;
  return out;
}

// From the longest beginning that the history knows.
result<rendered_prompt> prompt_preparer::render_on(const generation_request& request, const render_options& options) {
  const auto forms = context_->chat->forms_of(request.messages);
  const auto keys = keys_of(context_->history->key, {request.tenant, request.tools, request.messages, forms});
  const auto known = history_->find(keys);
  render_start start;
  if (!known.empty()) {
    start.end = known.end();
    start.tokens.reserve(start.end.tokens + tokens_expected(request.messages, start.end.messages));
    start.tokens.assign(known.tokens().begin(), known.tokens().end());
  }
  auto rendered = context_->chat->render(request.messages, options, std::move(start));
  if (!rendered)
    return rendered;
  auto& metrics = *context_->metrics;
  (known.empty() ? metrics.history_misses : metrics.history_hits).fetch_add(1, std::memory_order_relaxed);
  metrics.history_tokens.fetch_add(known.tokens().size(), std::memory_order_relaxed);
  history_->remember(known, keys, rendered->tokens, rendered->ends);
  show_history();
  return rendered;
}

prepared_prompt prompt_preparer::start_again(error fault) {
  if (history_)
    history_->clear();
  show_history();
  return refuse(std::move(fault));
}

// Gauges are the sum over all workers: each adds what changed of its own.
void prompt_preparer::show_history() noexcept {
  if (!history_)
    return;
  const auto now = history_->stats();
  auto& metrics = *context_->metrics;
  const auto change = [](std::size_t to, std::size_t from) {
    return static_cast<std::int64_t>(to) - static_cast<std::int64_t>(from);
  };
  metrics.history_conversations.fetch_add(change(now.conversations, shown_.conversations), std::memory_order_relaxed);
  metrics.history_messages.fetch_add(change(now.messages, shown_.messages), std::memory_order_relaxed);
  metrics.history_bytes.fetch_add(change(now.bytes, shown_.bytes), std::memory_order_relaxed);
  metrics.history_forgotten.fetch_add(now.forgotten - shown_.forgotten, std::memory_order_relaxed);
  shown_ = now;
}

void prompt_preparer::check_invariants() const {
  if (history_)
    history_->check_invariants();
}

} // namespace troupe
