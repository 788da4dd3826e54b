#include "actors/session/answer_stream.hpp"

#include <cstdio>

#include "actors/session/tool_call_parser.hpp"
#include "base/random.hpp"
#include "config/limits.hpp"

namespace troupe {

namespace {

void drop_leading_newlines(std::string& text, bool& drop) {
  const auto first = text.find_first_not_of('\n');
  if (first == std::string::npos) {
    text.clear();
    return;
  }
  text.erase(0, first);
  drop = false;
}

} // namespace

answer_tokens find_answer_tokens(const tokenizer& tokens) {
  return {tokens.added_token("<think>"), tokens.added_token("</think>"), tokens.added_token("<tool_call>"),
          tokens.added_token("</tool_call>")};
}

answer_stream::answer_stream(const tokenizer& tokens, answer_rules rules)
    : tokens_(tokens), rules_(std::move(rules)), stops_(rules_.stops),
      part_(rules_.split_thinking && rules_.thinking_open ? part::reasoning : part::answer),
      drop_newlines_(part_ == part::reasoning) {}

bool answer_stream::push(const sampled_token& sampled, std::vector<generation_event>& out) {
  const token_id token = sampled.token;
  const auto is = [token](token_id mark) { return mark >= 0 && token == mark; };
  if (part_ == part::reasoning)
    ++reasoning_tokens_;

  if (part_ == part::reasoning && is(rules_.marks.think_close)) {
    push_reasoning(utf8_.finish(), out);
    held_newlines_.clear();
    part_ = part::answer;
    drop_newlines_ = true;
    return true;
  }
  if (part_ == part::answer && rules_.split_thinking && is(rules_.marks.think_open)) {
    if (!push_answer(utf8_.finish(), out))
      return false;
    show(stops_.finish(), out);
    ++reasoning_tokens_;
    part_ = part::reasoning;
    drop_newlines_ = true;
    return true;
  }
  if (part_ == part::answer && rules_.collect_tool_calls && is(rules_.marks.tool_open)) {
    if (!push_answer(utf8_.finish(), out))
      return false;
    show(stops_.finish(), out);
    held_newlines_.clear();
    shown_bytes_ = answer_bytes_;
    part_ = part::tool_call;
    return true;
  }
  if (part_ == part::tool_call && is(rules_.marks.tool_close)) {
    tool_call_ += utf8_.finish();
    return close_tool_call(std::string(tokens_.bytes_of(token)), out);
  }
  if (tokens_.kind_of(token) == token_kind::control)
    return true;

  const auto bytes = tokens_.bytes_of(token);
  std::string text = utf8_.push(bytes);
  switch (part_) {
  case part::reasoning: push_reasoning(std::move(text), out); return true;
  case part::tool_call:
    tool_call_ += text;
    return tool_call_.size() <= limits::tool_call_bytes_max || give_up_tool_call({}, out);
  case part::answer: break;
  }
  const bool whole = !text.empty() || bytes.empty();
  if (drop_newlines_) {
    drop_leading_newlines(text, drop_newlines_);
    if (whole && text.empty() && !bytes.empty())
      return true;
  }
  if (rules_.logprobs)
    note_logprob(sampled, bytes, answer_bytes_ + text.size(), whole);
  return push_answer(std::move(text), out);
}

void answer_stream::finish(std::vector<generation_event>& out) {
  if (part_ == part::reasoning) {
    push_reasoning(utf8_.finish(), out);
    return;
  }
  if (part_ == part::tool_call) {
    tool_call_ += utf8_.finish();
    if (!give_up_tool_call({}, out))
      return;
  }
  if (!push_answer(utf8_.finish(), out))
    return;
  show(stops_.finish(), out);
  // Newlines around tool calls only separate them.
  std::string tail = calls_ > 0 ? std::string() : std::exchange(held_newlines_, {});
  shown_bytes_ = answer_bytes_ + 1; // also what waits for a character that never came
  auto logprobs = due_logprobs();
  if (!tail.empty() || !logprobs.empty())
    out.push_back(text_delta{std::move(tail), std::move(logprobs)});
}

// Text of the answer, in order; false once a stop string is complete.
bool answer_stream::push_answer(std::string text, std::vector<generation_event>& out) {
  if (text.empty())
    return true;
  answer_bytes_ += text.size();
  auto [visible, stopped] = stops_.push(text);
  if (!stopped) {
    show(std::move(visible), out);
    return true;
  }
  // Tokens that begin at the stop string or after it are not part of the answer.
  const auto cut = shown_bytes_ + held_newlines_.size() + visible.size();
  while (!logprobs_.empty() && logprobs_.back().begin >= cut)
    logprobs_.pop_back();
  visible.insert(0, std::exchange(held_newlines_, {}));
  shown_bytes_ = answer_bytes_ + 1;
  auto logprobs = due_logprobs();
  if (!visible.empty() || !logprobs.empty())
    out.push_back(text_delta{std::move(visible), std::move(logprobs)});
  return false;
}

// Text that no stop string can take back.
void answer_stream::show(std::string text, std::vector<generation_event>& out) {
  if (text.empty())
    return;
  text.insert(0, std::exchange(held_newlines_, {}));
  if (rules_.collect_tool_calls) {
    const auto last = text.find_last_not_of('\n');
    const auto keep = last == std::string::npos ? 0 : last + 1;
    held_newlines_ = text.substr(keep);
    text.resize(keep);
  }
  if (text.empty())
    return;
  shown_bytes_ += text.size();
  out.push_back(text_delta{std::move(text), due_logprobs()});
}

void answer_stream::push_reasoning(std::string text, std::vector<generation_event>& out) {
  if (drop_newlines_)
    drop_leading_newlines(text, drop_newlines_);
  if (text.empty())
    return;
  text.insert(0, std::exchange(held_newlines_, {}));
  const auto last = text.find_last_not_of('\n');
  const auto keep = last == std::string::npos ? 0 : last + 1;
  held_newlines_ = text.substr(keep);
  text.resize(keep);
  if (!text.empty())
    out.push_back(reasoning_delta{std::move(text)});
}

bool answer_stream::close_tool_call(std::string tail, std::vector<generation_event>& out) {
  auto parsed = parse_tool_call(tool_call_);
  if (!parsed)
    return give_up_tool_call(std::move(tail), out);
  out.push_back(tool_call_made{{call_id(), std::move(parsed->name), std::move(parsed->arguments)}});
  ++calls_;
  tool_call_.clear();
  part_ = part::answer;
  drop_newlines_ = true;
  return true;
}

bool answer_stream::give_up_tool_call(std::string tail, std::vector<generation_event>& out) {
  part_ = part::answer;
  std::string text(tokens_.bytes_of(rules_.marks.tool_open));
  text += std::exchange(tool_call_, {});
  text += tail;
  drop_newlines_ = false;
  return push_answer(std::move(text), out);
}

void answer_stream::note_logprob(const sampled_token& token, std::string_view bytes, std::size_t end, bool whole) {
  text_logprob value{std::string(bytes), token.logprob, {}};
  value.top.reserve(token.top.size());
  for (const auto& other : token.top)
    value.top.emplace_back(std::string(tokens_.bytes_of(other.token)), other.logprob);
  logprobs_.push_back({answer_bytes_, whole ? end : end + 1, std::move(value)});
}

std::vector<text_logprob> answer_stream::due_logprobs() {
  std::vector<text_logprob> due;
  while (!logprobs_.empty() && logprobs_.front().end <= shown_bytes_) {
    due.push_back(std::move(logprobs_.front().value));
    logprobs_.pop_front();
  }
  return due;
}

std::string answer_stream::call_id() const {
  char text[32];
  std::snprintf(text, sizeof text, "call_%016llx",
                static_cast<unsigned long long>(random_at(rules_.call_key, static_cast<std::uint64_t>(calls_))));
  return text;
}

} // namespace troupe
