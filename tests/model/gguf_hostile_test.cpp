// Thousands of random cuts, flips and false numbers: a file either opens with views that lie inside it or gives an error. Meant
// to be run under the address sanitizer, too: the bytes stand in a heap block of exactly their size.
#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/random.hpp"
#include "gguf_draft.hpp"
#include "model/gguf_model.hpp"
#include "model/model_file_inspect.hpp"

using namespace troupe;

namespace {

std::uint64_t seed() {
  const char* given = std::getenv("TROUPE_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : 20'250'601;
}

class dice {
public:
  explicit dice(std::uint64_t key) : key_(key) {}
  std::uint64_t below(std::uint64_t bound) { return random_at(key_, counter_++) % bound; }
  std::uint64_t any() { return random_at(key_, counter_++); }

private:
  std::uint64_t key_;
  std::uint64_t counter_ = 0;
};

// A number that arithmetic trips over.
std::uint64_t odd_number(dice& random) {
  constexpr std::uint64_t odd[] = {0,          1,
                                   2,          31,
                                   32,         33,
                                   255,        256,
                                   1u << 16,   (1u << 24) + 1,
                                   1ull << 31, (1ull << 32) - 1,
                                   1ull << 32, 1ull << 42,
                                   1ull << 62, 1ull << 63,
                                   ~0ull - 31, ~0ull - 7,
                                   ~0ull};
  return random.below(4) == 0 ? random.any() : odd[random.below(std::size(odd))];
}

// Cuts short, flips bytes, or writes false 4 or 8 byte numbers; seven of eight times within the header.
void damage(std::string& file, std::size_t header, dice& random) {
  const std::uint64_t wounds = 1 + random.below(3);
  for (std::uint64_t i = 0; i < wounds && file.size() > 16; ++i) {
    const std::size_t reach = random.below(8) != 0 ? std::min(header, file.size()) : file.size();
    const std::size_t at = random.below(reach - 8);
    switch (random.below(5)) {
    case 0: file.resize(random.below(file.size()) + 1); break;
    case 1: file[at] = static_cast<char>(random.any()); break;
    case 2: file[at] = static_cast<char>(file[at] ^ (1 << random.below(8))); break;
    case 3: {
      const auto value = static_cast<std::uint32_t>(odd_number(random));
      std::memcpy(file.data() + at, &value, sizeof value);
      break;
    }
    default: {
      const std::uint64_t value = odd_number(random);
      std::memcpy(file.data() + at, &value, sizeof value);
      break;
    }
    }
  }
}

// Reads every row of a view, which must lie in the file.
double touch(const tensor_view& view, std::span<const std::byte> file) {
  if (!view)
    return 0;
  REQUIRE(view.data >= file.data());
  REQUIRE(view.bytes() <= file.size());
  REQUIRE(static_cast<std::size_t>(view.data - file.data()) <= file.size() - view.bytes());
  std::vector<float> row(static_cast<std::size_t>(view.columns));
  double sum = 0;
  for (std::int64_t r = 0; r < view.rows; ++r) {
    dequantize_row(view.type, view.row(r), row.data(), view.columns);
    sum += static_cast<double>(row[0]);
  }
  return sum;
}

void touch_all(const model_weights& weights, std::span<const std::byte> file) {
  double sum = touch(weights.token_embedding, file) + touch(weights.output_norm, file) + touch(weights.output, file);
  for (const auto& l : weights.layers)
    for (const auto* view : {&l.attention_norm, &l.q, &l.k, &l.v, &l.q_bias, &l.k_bias, &l.v_bias, &l.q_norm, &l.k_norm, &l.o,
                             &l.ffn_norm, &l.gate, &l.up, &l.down})
      sum += touch(*view, file);
  CHECK((sum < 0 || sum >= 0 || sum != sum));
}

} // namespace

TEST_CASE("a damaged GGUF file opens inside its bounds or gives an error") {
  const std::uint64_t key = seed();
  MESSAGE("TROUPE_SEED=" << key);
  dice random(key);
  const architecture archs[] = {architecture::qwen3, architecture::qwen2, architecture::llama};
  const weight_type types[] = {weight_type::f32, weight_type::q4_0, weight_type::q8_0, weight_type::q5_1};
  int opened_count = 0, refused_count = 0;
  for (int kind = 0; kind < 6; ++kind) {
    const auto draft = test::small_gguf(archs[kind % 3], types[kind % 4]);
    const std::string whole = draft.bytes();
    const std::size_t header = draft.header_bytes();
    for (int round = 0; round < 1000; ++round) {
      std::string bent = whole;
      damage(bent, header, random);
      const std::unique_ptr<std::byte[]> bytes(new std::byte[bent.size()]);
      std::memcpy(bytes.get(), bent.data(), bent.size());
      const std::span<const std::byte> file{bytes.get(), bent.size()};
      CAPTURE(kind);
      CAPTURE(round);
      const auto opened = open_gguf(file, nullptr, "bent");
      if (!opened) {
        ++refused_count;
        CHECK_FALSE(opened.fault().message.empty());
        CHECK(opened.fault().message.find('\n') == std::string::npos);
        CHECK((opened.fault().code == errc::model_format || opened.fault().code == errc::unsupported));
        continue;
      }
      ++opened_count;
      touch_all(opened->weights, file);
      CHECK_FALSE(inspect_text(*opened).empty());
    }
  }
  // Both happen: damage to names and weights goes unnoticed, damage to structure does not.
  CHECK(opened_count > 100);
  CHECK(refused_count > 2000);
}
