// The pool's memory: how large a page is, that its blocks lie apart, and that a copy carries all of it.
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "cpu/kv_store.hpp"
#include "cpu/vector_kernels.hpp"

using namespace troupe;
using namespace troupe::cpu;

namespace {

hyperparameters shape_of(int layers, int kv_heads, int head_dim) {
  hyperparameters s;
  s.layers = layers;
  s.heads = s.kv_heads = kv_heads;
  s.head_dim = head_dim;
  return s;
}

std::size_t page_bytes(kv_types types, int head_dim) {
  return kv_store::create(shape_of(30, 3, head_dim), types, 1)->page_bytes();
}

// Stores a row that is told apart by layer, kind, head and token.
std::vector<float> row_of(int layer, int kind, int head, int token) {
  std::vector<float> x(64);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(((layer * 2 + kind) * 5 + head) * 16 + token) + 0.01f * static_cast<float>(i);
  return x;
}

template <class F>
void every_row(const kv_store& kv, int layers, int heads, page_id page, F fn) {
  for (int layer = 0; layer < layers; ++layer)
    for (int head = 0; head < heads; ++head)
      for (int token = 0; token < limits::page_tokens; ++token) {
        fn(kv.types().keys, kv.keys(layer, head) + page * kv.page_bytes(), token, row_of(layer, 0, head, token));
        fn(kv.types().values, kv.values(layer, head) + page * kv.page_bytes(), token, row_of(layer, 1, head, token));
      }
}

} // namespace

TEST_CASE("a page holds the rows and scales of its types and nothing else") {
  const std::size_t heads = 30 * 3, tokens = 16;
  CHECK(page_bytes({kv_type::f16, kv_type::f16}, 64) == heads * tokens * (128 + 128));
  CHECK(page_bytes({kv_type::bf16, kv_type::f16}, 64) == heads * tokens * (128 + 128));
  CHECK(page_bytes({kv_type::int8, kv_type::int8}, 64) == heads * tokens * 2 * (64 + 4));
  CHECK(page_bytes({kv_type::int4, kv_type::int4}, 64) == heads * tokens * 2 * (32 + 2 * 4));
  CHECK(page_bytes({kv_type::int8, kv_type::int4}, 64) == heads * tokens * (64 + 4 + 32 + 2 * 4));
  CHECK(page_bytes({kv_type::f16, kv_type::int8}, 80) == heads * tokens * (160 + 80 + 4));
  CHECK(page_bytes({kv_type::f16, kv_type::f16}, 20) == heads * tokens * 2 * 64); // padded to 32
}

TEST_CASE("a copied page reads as the first, for every pair of types, and other pages stay as they were") {
  for (const kv_type keys : kv_types_all)
    for (const kv_type values : kv_types_all) {
      CAPTURE(name_of(keys));
      CAPTURE(name_of(values));
      auto kv = std::move(*kv_store::create(shape_of(2, 5, 64), {keys, values}, 4));
      std::memset(kv.keys(0, 0), 0x11, 4 * kv.page_bytes());
      const auto& k = plain_vector_kernels;
      every_row(kv, 2, 5, 1, [&](kv_type type, std::byte* block, int token, const std::vector<float>& x) {
        k.rows_of(type).store(block, token, x.data(), 64);
      });
      kv.copy(1, 3);
      for (const page_id page : {1u, 3u})
        every_row(kv, 2, 5, page, [&](kv_type type, std::byte* block, int token, const std::vector<float>& x) {
          std::vector<std::byte> lone(kv_block_bytes(type, 64));
          std::vector<float> expected(64), got(64);
          k.rows_of(type).store(lone.data(), token, x.data(), 64);
          k.rows_of(type).load(lone.data(), token, expected.data(), 64);
          k.rows_of(type).load(block, token, got.data(), 64);
          CHECK(got == expected);
        });
      for (const page_id page : {0u, 2u})
        for (std::size_t i = 0; i < kv.page_bytes(); ++i)
          if (kv.keys(0, 0)[page * kv.page_bytes() + i] != std::byte{0x11})
            FAIL("page " << page << " was written at byte " << i);
    }
}

TEST_CASE("a type that does not fit the model's heads is refused by its setting") {
  const auto keys = kv_store::create(shape_of(2, 2, 80), {kv_type::int4, kv_type::f16}, 4);
  REQUIRE_FALSE(keys);
  CHECK(keys.fault().code == errc::unsupported);
  CHECK(keys.fault().message == "memory.kv_keys: int4 needs heads of a multiple of 32 numbers, and this model's have 80");
  const auto values = kv_store::create(shape_of(2, 2, 80), {kv_type::f16, kv_type::int4}, 4);
  REQUIRE_FALSE(values);
  CHECK(values.fault().message.find("memory.kv_values: int4") == 0);
  CHECK(kv_store::create(shape_of(2, 2, 80), {kv_type::int8, kv_type::bf16}, 4));
  CHECK(kv_store::create(shape_of(2, 2, 96), {kv_type::int4, kv_type::int4}, 4));
}

TEST_CASE("names of types are read as they are written, and no others") {
  for (const kv_type type : kv_types_all)
    CHECK(kv_type_named(name_of(type)) == type);
  for (const char* bad : {"", "int9", "F16", "q8_0", "int8 "})
    CHECK_FALSE(kv_type_named(bad));
}
