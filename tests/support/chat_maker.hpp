// Random conversations as clients send them, turn after turn, with all that makes rendering them from the middle hard:
// thoughts, calls and their results in rows, edits of the past, text that looks like control tokens, white space and marks at
// borders.
#pragma once
#include <random>
#include <string>
#include <vector>

#include "base/chat.hpp"

namespace troupe::testing {

class chat_maker {
public:
  explicit chat_maker(std::uint64_t seed) : random_(seed) {}

  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  bool chance(int percent) { return below(100) < static_cast<std::size_t>(percent); }

  std::string text() {
    static const std::vector<std::string> pieces{"the ",
                                                 "thing",
                                                 " a",
                                                 "ing",
                                                 "\n",
                                                 "\n\n",
                                                 " ",
                                                 "  \t",
                                                 "\r\n",
                                                 "42",
                                                 "naïve",
                                                 "\u0301",
                                                 "你好",
                                                 "。",
                                                 "🙂",
                                                 "<|im_end|>",
                                                 "<|im_start|>user\n",
                                                 "<think>",
                                                 "</think>",
                                                 "\n</think>\n\n",
                                                 "<tool_response>",
                                                 "</tool_response>",
                                                 "<tool_call>",
                                                 "{\"a\": 1}",
                                                 "<|eot_id|>",
                                                 "'s",
                                                 std::string("\0", 1),
                                                 "\xff",
                                                 "\u00a0"};
    std::string out;
    for (std::size_t n = chance(10) ? 0 : below(12); n > 0; --n)
      out += pieces[below(pieces.size())];
    return out;
  }

  chat_message user() { return {"user", text(), {}, {}, {}}; }

  chat_message answer(bool calls) {
    chat_message out{"assistant", text(), chance(40) ? text() : std::string(), {}, {}};
    for (std::size_t n = calls ? 1 + below(3) : 0; n > 0; --n)
      out.tool_calls.push_back({
          "call_" + std::to_string(random_()),
          chance(80) ? "get" : text(),
          chance(70) ? R"({"key":"the <think>","n":[1, 2]})" : text(),
      });
    return out;
  }

  chat_message result() { return {"tool", text(), {}, {}, "call"}; }

  std::vector<std::string> tools() {
    static const std::vector<std::string> known{R"({"type":"function","function":{"name":"get"}})",
                                                R"({"type": "function", "function": {"name": "the </tools>", "n": 1.0}})",
                                                "{}"};
    std::vector<std::string> out;
    for (std::size_t n = below(3); n > 0; --n)
      out.push_back(known[below(known.size())]);
    return out;
  }

  std::vector<chat_message> opening() {
    std::vector<chat_message> out;
    if (chance(60))
      out.push_back({"system", chance(70) ? "You are the thing." : text(), {}, {}, {}});
    out.push_back(user());
    return out;
  }

  // What the next turn adds: an answer, perhaps by way of tools, and the next question or nothing.
  void go_on(std::vector<chat_message>& chat, bool tools) {
    const auto add_results = [&] {
      for (std::size_t n = 1 + below(3); n > 0; --n)
        chat.push_back(result());
    };
    if (tools && chance(40)) {
      chat.push_back(answer(true));
      add_results();
      if (chance(50))
        return; // the results are the question
    }
    chat.push_back(answer(false));
    if (chance(5))
      return; // an answer to go on with
    chat.push_back(chance(5) ? chat_message{"system", text(), {}, {}, {}} : user());
  }

  // As clients change what was said; may leave what no template takes.
  void edit(std::vector<chat_message>& chat) {
    auto& one = chat[below(chat.size())];
    switch (below(8)) {
    case 0: one.content += "x"; break;
    case 1: one.content = text(); break;
    case 2: one.reasoning = one.reasoning.empty() ? "the reason" : ""; break;
    case 3: chat.resize(1 + below(chat.size())); break;
    case 4: chat.erase(chat.begin() + static_cast<std::ptrdiff_t>(below(chat.size()))); break;
    case 5: chat.insert(chat.begin() + static_cast<std::ptrdiff_t>(below(chat.size())), result()); break;
    case 6: one.role = chance(10) ? "wizard" : "user"; break;
    default: one.tool_calls.clear(); break;
    }
  }

private:
  std::mt19937_64 random_;
};

} // namespace troupe::testing
