// The model goldens: read from their JSON files, and checked against any logit_source with doctest assertions.
//
//   tests/golden/logits.json    random 2-layer models, every architecture and weight type   (tests/golden/logits_make.py)
//   models/tiny/golden.json     20 conversations with the bundled model                     (models/recipe/export.py)
//   tests/golden/smollm2.json   greedy continuations of 5 prompts by SmolLM2-135M-Instruct  (tests/golden/smollm2_make.py)
//
// A file that is missing or malformed throws std::runtime_error: it is part of the repository.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "logit_source.hpp"
#include "model/weights.hpp"
#include "random_model.hpp"

namespace troupe::tests {

// -- random models --
struct logit_row {
  int after = 0;              // tokens fed
  std::vector<double> logits; // of the first so many ids
};

struct random_case {
  std::string name; // "qwen3 Q4_K yarn"
  architecture arch = architecture::qwen3;
  weight_type type = weight_type::f32;
  std::uint64_t seed = 0;
  random_model_sizes sizes;
  std::vector<token_id> tokens;
  std::vector<logit_row> rows;

  random_model make() const { return make_random_model(arch, type, seed, sizes); }
};

std::vector<random_case> read_random_cases(); // tests/golden/logits.json

// |got - expected| / |expected| as vectors, both with their mean taken off; the largest over the case's rows.
double relative_error(const random_case& c, logit_source& source);

// -- greedy continuations --
struct greedy_case {
  std::string prompt;                 // text
  std::vector<token_id> ids;          // of the prompt
  std::vector<token_id> continuation; // greedy
  std::vector<double> margins;        // best logit less second best before each token of the continuation; empty where unknown
  double margin_min = 0;              // the smallest of them
  std::vector<double> first_logits;   // after the prompt; may be empty
  double highest_logit = 0;           // set where first_logits are
};

std::vector<greedy_case> read_tiny_cases();    // models/tiny/golden.json
std::vector<greedy_case> read_smollm2_cases(); // tests/golden/smollm2.json

struct greedy_tolerance {
  double logits = 1e-3;   // of first_logits, absolute, against the highest one
  double near_tie = 2e-3; // another token may lead where both the golden's margin and the lead are smaller
};

// Checks argmax, first logits and each token of the continuation, given the golden ones before it. Near-ties that went the other
// way are printed.
void check_greedy(const greedy_case& c, logit_source& source, const greedy_tolerance& tolerance);

// The SmolLM2 file that TROUPE_SMOLLM2 names, or that lies in ${XDG_CACHE_HOME:-$HOME/.cache}/troupe; nothing where there is none.
std::optional<std::filesystem::path> smollm2_file();

} // namespace troupe::tests
