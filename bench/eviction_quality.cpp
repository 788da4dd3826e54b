// eviction_quality MODEL SAMPLES [answer_tokens] [threads] [ring 1|0]: what a model still answers once tokens of its talk were
// evicted, for each policy and share of tokens kept.
//
// SAMPLES has a JSON object a line: {"talk": text, "questions": [text, ...], "expected": [answer, ...] or missing}, rendered as
// the model's template would, questions ending where the answer begins; bench/eviction_quality.py makes them and judges. A talk
// is computed, scored and compacted through the CPU backend with the functions that the batcher uses
// (memory/token_eviction.hpp); its questions are then asked one by one of each evicted cache, greedily where answer_tokens > 0.
// Prints a JSON object a talk:
//   {"tokens", "bytes": [of each token], "variants": [{"policy", "keep", "kept": [positions], "answers": [text],
//    "question_errors": [number], "answer_errors": [number], "likelihoods": [number]}]}
// The numbers are there where an answer is expected. An error is the distance of logits from those behind the full cache, each
// row's mean subtracted, as a share of the latter's length: of the row after a question, and of all rows that choose the
// expected answer's tokens. The likelihood is theirs: the mean natural logarithm.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <numeric>
#include <string>
#include <vector>

#include <simdjson.h>

#include "base/random.hpp"
#include "config/limits.hpp"
#include "cpu/cpu_backend.hpp"
#include "memory/token_eviction.hpp"
#include "model/chat_template_json.hpp"
#include "model/model_file.hpp"
#include "model/tokenizer.hpp"

using namespace troupe;

namespace {

constexpr double ratios[] = {1.0, 0.7, 0.5, 0.25};
constexpr int talk_tokens_max = 1024;
constexpr int question_tokens_max = 64;
constexpr int observed_rows = 32; // SnapKV's window
constexpr std::uint64_t random_seed = 5;

[[noreturn]] void give_up(const std::string& why) {
  std::cerr << "eviction_quality: " << why << "\n";
  std::exit(1);
}

int pages_of(int tokens) {
  return (tokens + limits::page_tokens - 1) / limits::page_tokens;
}

struct sample {
  std::vector<token_id> talk;
  std::vector<std::vector<token_id>> questions, expected;
};

// How tokens are chosen: a score for each and what it is spread over.
struct policy {
  std::string name;
  std::vector<float> scores;
  int span = 1;
};

// One cache that questions are asked of.
struct variant {
  std::string policy;
  double ratio = 1;
  std::vector<std::int32_t> kept;
  attention_window window;
  std::shared_ptr<const page_table> pages;
  int length = 0; // positions before a question
  int evicted = 0;
  std::vector<std::vector<token_id>> answers; // one a question, as the rest
  std::vector<double> question_errors, answer_errors, likelihoods;
};

using logits_row = std::vector<float>; // its mean is 0

struct options {
  int answer_tokens = 40;
  int threads = 0;
  bool ring = true; // also ask behind a window, which computes the talk once more for each share
};

class examiner {
public:
  examiner(const model_file& file, const tokenizer& words, const options& o) : file_(file), options_(o) {
    cpu_options device;
    device.threads = o.threads;
    device.step_tokens_max = variants_max * question_tokens_max;
    device.pages = static_cast<std::uint32_t>(variants_max * pages_each());
    device.usable_vocabulary = std::min(words.size(), file.weights.shape.vocabulary);
    device.log = [](log_level level, std::string_view line) {
      if (level >= log_level::warning)
        std::cerr << line << "\n";
    };
    device.on_logits = [this](const request_id& id, std::span<const float> row) { take(id.number, row); };
    auto made = make_cpu_backend(file.weights, device);
    if (!made)
      give_up(made.fault().message);
    device_ = std::move(*made);
    sampling_params greedy;
    greedy.temperature = 0;
    greedy_ = std::make_shared<const sampling_params>(greedy);
  }

  std::vector<variant> examine(const sample& s) {
    if (s.talk.size() > talk_tokens_max || s.talk.size() <= observed_rows)
      give_up("a talk of " + std::to_string(s.talk.size()) + " tokens");
    step_plan moves;
    auto variants = make_variants(s, moves);
    run(std::move(moves));
    for (std::size_t i = 0; i < s.questions.size(); ++i) {
      const auto expected = s.expected.empty() ? std::vector<token_id>() : s.expected[i];
      if (s.questions[i].empty() || s.questions[i].size() + expected.size() > question_tokens_max)
        give_up("a question and answer of " + std::to_string(s.questions[i].size() + expected.size()) + " tokens");
      if (!expected.empty())
        compare(s.questions[i], expected, variants);
      if (options_.answer_tokens > 0)
        ask(s.questions[i], variants);
    }
    return variants;
  }

private:
  static constexpr int variants_max = 32;
  int pages_each() const {
    return pages_of(talk_tokens_max + std::max(reading_rows_max, question_tokens_max + options_.answer_tokens));
  }

  std::shared_ptr<const page_table> pages_of_variant(std::size_t index) const {
    auto table = std::make_shared<page_table>(static_cast<std::size_t>(pages_each()));
    std::iota(table->begin(), table->end(), static_cast<page_id>(index * table->size()));
    return table;
  }

  static std::vector<token_id> part(const std::vector<token_id>& tokens, int begin, int end) {
    return {tokens.begin() + begin, tokens.begin() + end};
  }

  step_result run(step_plan plan) {
    auto done = device_->run(plan);
    if (!done)
      give_up(done.fault().message);
    for (const auto& s : done->sequences)
      if (s.fault)
        give_up(s.fault->message);
    return std::move(*done);
  }

  std::vector<float> scores_of(sequence_step s, attention_score score) {
    s.scores = score;
    step_plan plan;
    plan.sequences.push_back(std::move(s));
    return std::move(run(std::move(plan)).sequences.front().scores);
  }

  sequence_step step(std::vector<token_id> tokens, int position, std::shared_ptr<const page_table> pages) const {
    sequence_step s;
    s.tokens = std::move(tokens);
    s.position = position;
    s.pages = std::move(pages);
    return s;
  }

  // Computes the talk in `pages` and scores it in every way.
  std::vector<policy> score(const std::vector<token_id>& talk, const std::shared_ptr<const page_table>& pages) {
    const int n = static_cast<int>(talk.size());
    auto mass = scores_of(step(part(talk, 0, n - observed_rows), 0, pages), attention_score::mass);
    const auto observed = scores_of(step(part(talk, n - observed_rows, n), n - observed_rows, pages), attention_score::mass);
    mass.resize(talk.size());
    std::vector<float> chance, age;
    for (std::size_t i = 0; i < talk.size(); ++i) {
      mass[i] += observed[i];
      chance.push_back(static_cast<float>(uniform_at(random_seed, drawn_++)));
      age.push_back(static_cast<float>(i));
    }
    const int span = eviction_rule{}.span;
    return {{"ours", read_again(talk, pages), span},
            {"H2O", std::move(mass)},
            {"SnapKV", observed, span},
            {"random", std::move(chance)},
            {"sinks and recent", std::move(age)}};
  }

  // As the batcher does (actors/batcher/batch_eviction.cpp).
  std::vector<float> read_again(const std::vector<token_id>& talk, const std::shared_ptr<const page_table>& pages) {
    const int n = static_cast<int>(talk.size());
    std::vector<float> out(talk.size());
    for (int at = 0; at < n;) {
      const auto chunk = read_again_from(at, n, reading_rows_max);
      const auto scores = scores_of(step(part(talk, chunk.lead, chunk.end), n, pages), attention_score::peak);
      for (std::size_t i = 0; i < out.size(); ++i)
        out[i] = std::max(out[i], scores[i]);
      at = chunk.end;
    }
    return out;
  }

  // The full cache, every policy's, and the ring's, which never had what it doesn't see. What `moves` does makes them so.
  std::vector<variant> make_variants(const sample& s, step_plan& moves) {
    const int n = static_cast<int>(s.talk.size());
    std::vector<variant> out{{"full cache", 1, {}, {}, pages_of_variant(0), n, 0, {}, {}, {}, {}}};
    const auto add = [&](const std::string& name, double ratio) -> variant& {
      out.push_back({name, ratio, {}, {}, pages_of_variant(out.size()), n, 0, {}, {}, {}, {}});
      return out.back();
    };
    const auto policies = score(s.talk, out.front().pages);
    for (const auto& p : policies)
      for (const double ratio : ratios) {
        if (ratio == 1 && &p != &policies.front()) // all keep the same then
          continue;
        auto& v = add(p.name, ratio);
        eviction_rule rule;
        rule.span = p.span;
        v.length = static_cast<int>(std::lround(ratio * n));
        v.evicted = n - v.length;
        v.kept = choose_kept(p.scores, v.length, rule);
        moves.compactions.push_back({{}, pages_of_variant(0), v.pages, v.kept});
      }
    for (const double ratio : ratios)
      if (options_.ring && ratio < 1) {
        auto& v = add("ring window", ratio);
        v.window = window_of(static_cast<int>(std::lround(ratio * n)), s);
        step_plan plan;
        plan.sequences.push_back(step(s.talk, 0, v.pages));
        plan.sequences.back().window = v.window;
        run(std::move(plan));
      }
    return out;
  }

  // Shows `keep` tokens of the talk at the end of the longest question, to half a page.
  static attention_window window_of(int keep, const sample& s) {
    std::size_t longest = 0;
    for (const auto& question : s.questions)
      longest = std::max(longest, question.size());
    constexpr int sink_pages = 1;
    const int shown = keep + static_cast<int>(longest) + limits::page_tokens / 2;
    return {sink_pages, std::max(1, (shown + limits::page_tokens / 2) / limits::page_tokens - sink_pages)};
  }

  sequence_step asked(const variant& v, std::size_t index, std::vector<token_id> tokens, std::size_t behind = 0) const {
    auto s = step(std::move(tokens), v.length + static_cast<int>(behind), v.pages);
    s.id.number = index;
    s.window = v.window;
    s.evicted = v.evicted;
    s.sample = true;
    s.sampling = greedy_;
    return s;
  }

  // All rows that choose the expected answer's tokens: each token is a sequence of its own on its variant's pages.
  void compare(const std::vector<token_id>& question, const std::vector<token_id>& expected, std::vector<variant>& variants) {
    step_plan plan;
    for (std::size_t v = 0; v < variants.size(); ++v) {
      plan.sequences.push_back(asked(variants[v], v, question));
      for (std::size_t i = 0; i + 1 < expected.size(); ++i)
        plan.sequences.push_back(asked(variants[v], v, {expected[i]}, question.size() + i));
    }
    rows_.assign(variants.size(), {});
    watched_ = true;
    run(std::move(plan));
    watched_ = false;
    for (std::size_t v = 0; v < variants.size(); ++v) {
      variants[v].question_errors.push_back(error_of(v, 1));
      variants[v].answer_errors.push_back(error_of(v, expected.size()));
      double sum = 0;
      for (std::size_t i = 0; i < expected.size(); ++i)
        sum += log_likelihood(rows_[v][i], expected[i]);
      variants[v].likelihoods.push_back(sum / static_cast<double>(expected.size()));
    }
  }

  void take(std::uint64_t variant, std::span<const float> row) {
    if (!watched_)
      return;
    const auto mean = std::accumulate(row.begin(), row.end(), 0.0) / static_cast<double>(row.size());
    auto& out = rows_.at(static_cast<std::size_t>(variant)).emplace_back();
    for (const float logit : row)
      out.push_back(logit - static_cast<float>(mean));
  }

  double error_of(std::size_t variant, std::size_t rows) const {
    double distance = 0, length = 0;
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t i = 0; i < rows_[0][r].size(); ++i) {
        const double full = rows_[0][r][i];
        distance += std::pow(rows_[variant][r][i] - full, 2);
        length += full * full;
      }
    return std::sqrt(distance / length);
  }

  static double log_likelihood(const logits_row& row, token_id token) {
    const double highest = *std::max_element(row.begin(), row.end());
    double total = 0;
    for (const float logit : row)
      total += std::exp(logit - highest);
    return row[static_cast<std::size_t>(token)] - highest - std::log(total);
  }

  void ask(const std::vector<token_id>& question, std::vector<variant>& variants) {
    step_plan plan;
    for (std::size_t i = 0; i < variants.size(); ++i) {
      variants[i].answers.emplace_back();
      plan.sequences.push_back(asked(variants[i], i, question));
    }
    while (!plan.sequences.empty()) {
      const auto done = run(std::move(plan));
      plan = {};
      for (const auto& result : done.sequences) {
        const auto index = static_cast<std::size_t>(result.id.number);
        const auto token = result.token->token;
        if (std::count(file_.end_tokens.begin(), file_.end_tokens.end(), token) > 0)
          continue;
        auto& answer = variants[index].answers.back();
        answer.push_back(token);
        if (static_cast<int>(answer.size()) < options_.answer_tokens)
          plan.sequences.push_back(asked(variants[index], index, {token}, question.size() + answer.size() - 1));
      }
    }
  }

  const model_file& file_;
  options options_;
  std::unique_ptr<backend> device_;
  std::shared_ptr<const sampling_params> greedy_;
  std::vector<std::vector<logits_row>> rows_; // of each variant, those that compare() looks at
  bool watched_ = false;
  std::uint64_t drawn_ = 0;
};

template <class Values, class Write>
void print_list(const char* name, const Values& values, Write&& write) {
  std::cout << ", \"" << name << "\": [";
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::cout << (i > 0 ? ", " : "");
    write(values[i]);
  }
  std::cout << "]";
}

void print(const sample& s, const std::vector<variant>& variants, const tokenizer& words) {
  std::cout << "{\"tokens\": " << s.talk.size();
  print_list("bytes", s.talk, [&](token_id t) { std::cout << words.bytes_of(t).size(); });
  print_list("variants", variants, [&](const variant& v) {
    std::cout << "{\"policy\": " << json_string(v.policy) << ", \"keep\": " << v.ratio;
    print_list("kept", v.kept, [](std::int32_t position) { std::cout << position; });
    print_list("answers", v.answers, [&](const auto& answer) {
      utf8_stream text;
      auto whole = text.push(words.decode(answer));
      std::cout << json_string(whole + text.finish());
    });
    const auto number = [](double x) { std::cout << x; };
    print_list("question_errors", v.question_errors, number);
    print_list("answer_errors", v.answer_errors, number);
    print_list("likelihoods", v.likelihoods, number);
    std::cout << "}";
  });
  std::cout << "}" << std::endl;
}

sample read_sample(simdjson::dom::parser& parser, const std::string& line, const tokenizer& words) {
  const simdjson::dom::element object = parser.parse(line);
  sample out;
  out.talk = words.encode_with_added_tokens(std::string_view(object["talk"]));
  for (const auto question : object["questions"].get_array())
    out.questions.push_back(words.encode_with_added_tokens(std::string_view(question)));
  if (const auto expected = object["expected"]; !expected.error())
    for (const auto answer : expected.get_array())
      out.expected.push_back(words.encode_with_added_tokens(std::string_view(answer)));
  if (!out.expected.empty() && out.expected.size() != out.questions.size())
    give_up("not every question has an expected answer");
  return out;
}

} // namespace

int main(int count, char** arguments) {
  if (count < 3) {
    std::cerr << "usage: eviction_quality MODEL SAMPLES [answer_tokens] [threads] [ring 1|0]\n";
    return 2;
  }
  auto file = open_model(arguments[1]);
  if (!file)
    give_up(file.fault().message);
  const auto words = tokenizer::build(std::move(file->tokenizer));
  if (!words)
    give_up(words.fault().message);
  options o;
  if (count > 3)
    o.answer_tokens = std::max(0, std::atoi(arguments[3]));
  if (count > 4)
    o.threads = std::atoi(arguments[4]);
  if (count > 5)
    o.ring = std::atoi(arguments[5]) != 0;
  examiner e(*file, **words, o);
  std::ifstream in(arguments[2]);
  if (!in)
    give_up(std::string("cannot read ") + arguments[2]);
  simdjson::dom::parser parser;
  try {
    for (std::string line; std::getline(in, line);) {
      const auto s = read_sample(parser, line, **words);
      print(s, e.examine(s), **words);
    }
  } catch (const simdjson::simdjson_error& why) {
    give_up(std::string(arguments[2]) + ": " + why.what());
  }
  return 0;
}
