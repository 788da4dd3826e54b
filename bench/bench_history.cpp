// What does assembling the input of a late turn cost, with a token history and from the start?
//
//   bench_history [TOKENIZER_JSON [TEMPLATE [QUESTION_WORDS ANSWER_WORDS]]]
//
// 100 chats of 100 turns, one turn of each at a time, through the worker's own code (actors/worker/prompt_preparer.hpp): system
// prompt, questions and answers of random common English words, of half to one and a half times the given lengths (20 and 60).
// Prints medians and 99th percentiles over the chats' last turns, and what the parts cost alone. The tokens are compared, too.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "actors/worker/prompt_preparer.hpp"
#include "base/random.hpp"
#include "config/limits.hpp"
#include "model/hf_tokenizer.hpp"

using namespace troupe;

namespace {

constexpr std::size_t chats = 100, turns = 100, system_words = 150;
constexpr std::size_t history_bytes = std::size_t{64} << 20; // the setting's default

class word_source {
public:
  word_source() {
    std::ifstream file(std::filesystem::path(TROUPE_SOURCE_DIR) / "tests" / "golden" / "tokenizer_corpus_parts.txt");
    bool inside = false;
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("%% "))
        inside = line == "%% english";
      else if (inside)
        words_.push_back(line);
    }
  }
  bool empty() const { return words_.empty(); }

  // Words in falling frequency, in sentences. About so many.
  std::string text(std::size_t words) {
    std::string out;
    for (std::size_t n = words / 2 + random_at(1, drawn_++) % (words + 1); n > 0; --n) {
      const auto rank = static_cast<std::size_t>(std::pow(static_cast<double>(words_.size()), uniform_at(2, drawn_++))) - 1;
      out += words_[std::min(rank, words_.size() - 1)];
      out += n == 1 ? "." : random_at(3, drawn_++) % 12 == 0 ? ". " : " ";
    }
    return out;
  }

private:
  std::vector<std::string> words_;
  std::uint64_t drawn_ = 0;
};

class timings {
public:
  template <class Work>
  void add(Work&& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    micros_.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  }
  double at(double share) {
    std::sort(micros_.begin(), micros_.end());
    return micros_[static_cast<std::size_t>(share * static_cast<double>(micros_.size() - 1))];
  }
  void print(const char* name) { std::printf("%-44s %9.1f us  p99 %9.1f us\n", name, at(0.5), at(0.99)); }

private:
  std::vector<double> micros_;
};

context_ptr context_of(const chat_template& chat, std::shared_ptr<const tokenizer> tokens, bool history) {
  auto out = std::make_shared<runtime_context>();
  out->chat = chat;
  out->tokens = std::move(tokens);
  out->metrics = std::make_shared<metrics_registry>();
  if (history)
    out->history.emplace(history_choice{history_bytes, hash_key(std::mt19937_64(7))});
  return out;
}

std::size_t bytes_of(const generation_request& request) {
  std::size_t bytes = 0;
  for (const auto& m : request.messages)
    bytes += m.content.size();
  return bytes;
}

int run(const chat_template& chat, const std::shared_ptr<const tokenizer>& tokens, std::size_t question, std::size_t answer) {
  word_source words;
  if (words.empty())
    return std::fprintf(stderr, "tests/golden/tokenizer_corpus_parts.txt has no words\n"), 1;
  const auto context = context_of(chat, tokens, true);
  prompt_preparer with(context), without(context_of(chat, tokens, false));
  std::vector<generation_request> requests(chats);
  for (auto& r : requests)
    r.messages = {{"system", words.text(system_words), {}, {}, {}}};
  timings first, on, off, naming, copying, own;
  std::size_t prompt_tokens = 0, prompt_bytes = 0, own_tokens = 0;
  for (std::size_t turn = 1; turn <= turns; ++turn)
    for (auto& r : requests) {
      if (turn > 1)
        r.messages.push_back({"assistant", words.text(answer), {}, {}, {}});
      r.messages.push_back({"user", words.text(question), {}, {}, {}});
      prepared_prompt got, expected;
      timings ignored;
      const generation_request read = r; // what the edge reads just before
      (turn == turns ? on : turn == 1 ? first : ignored).add([&] { got = with.prepare(read); });
      if (turn < turns)
        continue;
      const generation_request read_again = r;
      off.add([&] { expected = without.prepare(read_again); });
      if (got.tokens != expected.tokens)
        return std::fprintf(stderr, "the tokens differ\n"), 1;
      prompt_tokens += got.tokens.size();
      prompt_bytes += bytes_of(r);
    }
  for (const generation_request& kept : requests) {
    const generation_request r = kept;
    naming.add([&] {
      const auto forms = chat.forms_of(r.messages);
      if (keys_of(context->history->key, {r.tenant, r.tools, r.messages, forms}).size() != r.messages.size())
        std::abort();
    });
    const std::vector<chat_message> last(r.messages.end() - 2, r.messages.end());
    own.add([&] { own_tokens += chat.render(last, {})->tokens.size(); });
    const std::vector<token_id> buffer(prompt_tokens / chats);
    copying.add([&] {
      if (std::vector<token_id>(buffer).size() != buffer.size())
        std::abort();
    });
  }
  std::printf("turn %zu of %zu chats: %zu tokens, %zu KiB of text, of them the turn's own %zu tokens; template %s\n", turns,
              chats, prompt_tokens / chats, (prompt_bytes / chats) >> 10, own_tokens / chats,
              std::string(name_of(chat.kind())).c_str());
  off.print("rendered and tokenised from the start");
  on.print("with the history");
  naming.print("  naming every beginning (hash)");
  own.print("  the turn's own text alone");
  copying.print("  copying so many tokens");
  first.print("turn 1, for comparison");
  std::printf("ratio %.1f; naming %.2f GB/s; history %.1f MiB for %zu chats, %lld hits, %lld misses\n",
              off.at(0.5) / on.at(0.5), 1e-3 * static_cast<double>(prompt_bytes / chats) / naming.at(0.5),
              static_cast<double>(context->metrics->history_bytes) / (1 << 20), chats,
              static_cast<long long>(context->metrics->history_hits), static_cast<long long>(context->metrics->history_misses));
  return 0;
}

int refuse(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  return 1;
}

} // namespace

int main(int argc, char** argv) {
  const std::filesystem::path file =
      argc > 1 ? argv[1] : std::filesystem::path(TROUPE_SOURCE_DIR) / "models" / "tiny" / "tokenizer.json";
  const auto kind = template_named(argc > 2 ? argv[2] : "qwen3");
  const std::size_t question = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 20;
  const std::size_t answer = argc > 4 ? std::strtoul(argv[4], nullptr, 10) : 60;
  if (!kind || question == 0 || answer == 0)
    return refuse("bench_history [TOKENIZER_JSON [TEMPLATE [QUESTION_WORDS ANSWER_WORDS]]]");
  const auto document = json_document::read(file);
  if (!document)
    return refuse(document.fault().message);
  auto data = hf_tokenizer(*document, limits::vocabulary_max);
  if (!data)
    return refuse(data.fault().message);
  auto tokens = tokenizer::build(std::move(data).value());
  if (!tokens)
    return refuse(tokens.fault().message);
  const auto chat = chat_template::create(*kind, *tokens);
  if (!chat)
    return refuse(chat.fault().message);
  return run(*chat, *tokens, question, answer);
}
