// The sampler against numpy: tests/golden/sampler.json, written by tests/golden/sampler_make.py.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <simdjson.h>

#include "base/random.hpp"
#include "model/sampler.hpp"

using namespace troupe;
using simdjson::dom::element;

namespace {

int integer(const element& e) { return static_cast<int>(e.get_int64().value()); }

sampling_params params_of(const element& e) {
  sampling_params out;
  for (const auto& [key, value] : e.get_object()) {
    const auto number = [&v = value] { return static_cast<float>(v.get_double().value()); };
    if (key == "temperature")
      out.temperature = number();
    else if (key == "top_k")
      out.top_k = integer(value);
    else if (key == "top_p")
      out.top_p = number();
    else if (key == "min_p")
      out.min_p = number();
    else if (key == "repetition_penalty")
      out.repetition_penalty = number();
    else if (key == "presence_penalty")
      out.presence_penalty = number();
    else if (key == "frequency_penalty")
      out.frequency_penalty = number();
    else if (key == "seed")
      out.seed = value.get_uint64();
    else if (key == "logit_bias")
      for (const element pair : value.get_array())
        out.logit_bias.emplace_back(integer(pair.at(0)), static_cast<float>(pair.at(1).get_double().value()));
    else
      FAIL("unknown parameter " << key);
  }
  return out;
}

std::vector<float> logits_of(std::uint64_t seed, int count, bool levels) {
  std::vector<float> out;
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(count); ++i) {
    const float x = static_cast<float>(mix64(mix64(seed) + i) >> 40) * 0x1p-20f - 8.0f;
    out.push_back(levels ? std::floor(x) : x);
  }
  return out;
}

} // namespace

TEST_CASE("the sampler chooses and reports what numpy does") {
  simdjson::dom::parser parser;
  const element document = parser.load(std::string(TROUPE_SOURCE_DIR) + "/tests/golden/sampler.json");
  int cases = 0;
  for (const element c : document["cases"].get_array()) {
    ++cases;
    const std::string name(c["name"].get_string().value());
    CAPTURE(name);
    const auto logits = logits_of(c["seed"].get_uint64(), integer(c["vocabulary"]), c["levels"].get_bool());
    auto params = params_of(c["params"]);
    std::vector<token_count> counts;
    if (c["counts"].error() == simdjson::SUCCESS)
      for (const element row : c["counts"].get_array())
        counts.push_back({integer(row.at(0)), static_cast<std::uint32_t>(integer(row.at(1))),
                          static_cast<std::uint32_t>(integer(row.at(2)))});
    const auto sample_at = [&](std::uint64_t position) {
      auto row = logits;
      return sample(row, integer(c["usable"]), params, counts, position);
    };

    std::uint64_t position = 0;
    for (const element token : c["tokens"].get_array()) {
      CAPTURE(position);
      CHECK(sample_at(position++).token == integer(token));
    }
    if (c["kept"].error() == simdjson::SUCCESS) {
      std::vector<token_id> kept;
      for (const element token : c["kept"].get_array())
        kept.push_back(integer(token));
      for (; position < 400; ++position)
        CHECK(std::count(kept.begin(), kept.end(), sample_at(position).token) == 1);
    }

    params.logprobs = true;
    params.top_logprobs = 5;
    const auto reported = sample_at(0);
    CHECK(std::abs(static_cast<double>(reported.logprob) - c["logprob"].get_double().value()) < 2e-5);
    std::size_t i = 0;
    REQUIRE(reported.top.size() == 5);
    for (const element pair : c["top"].get_array()) {
      CHECK(reported.top[i].token == integer(pair.at(0)));
      CHECK(std::abs(static_cast<double>(reported.top[i].logprob) - pair.at(1).get_double().value()) < 2e-5);
      ++i;
    }
  }
  CHECK(cases == 48);
}
