#include <cmath>
#include <vector>

#include "base/random.hpp"
#include "cpu/vector_kernels.hpp"

namespace troupe::cpu {
namespace {

// Odd on purpose: no length but the head's is a whole register, and the queries cross a block of positions.
constexpr int width = 53, group = 3, tokens = 5, position = 61;
constexpr int pages = (position + tokens + limits::page_tokens - 1) / limits::page_tokens;

std::vector<float> random_floats(std::uint64_t key, std::size_t count) {
  std::vector<float> out(count);
  for (std::size_t i = 0; i < count; ++i)
    out[i] = static_cast<float>(uniform_at(key, i) * 4 - 2);
  return out;
}

std::vector<float> attention_of(const vector_kernels& k, kv_type type) {
  const int head_dim = type == kv_type::int4 ? 96 : 80;
  const std::size_t stride = kv_block_bytes(type, head_dim);
  const auto q = random_floats(1, static_cast<std::size_t>(tokens * group * head_dim));
  std::vector<std::byte> keys(pages * stride), values(pages * stride);
  for (int i = 0; i < pages * limits::page_tokens; ++i) {
    const std::size_t page = static_cast<std::size_t>(i / limits::page_tokens) * stride;
    const auto at = static_cast<std::uint64_t>(i);
    k.rows_of(type).store(keys.data() + page, i % limits::page_tokens, random_floats(10 + at, 96).data(), head_dim);
    k.rows_of(type).store(values.data() + page, i % limits::page_tokens, random_floats(500 + at, 96).data(), head_dim);
  }
  std::vector<page_id> table;
  for (page_id p = 0; p < pages; ++p)
    table.push_back(pages - 1 - p);
  std::vector<float> out(q.size()), scratch(attention_scratch(tokens * group, head_dim));
  attention_task t;
  t.q = q.data();
  t.q_stride = t.out_stride = group * head_dim;
  t.tokens = tokens;
  t.group = group;
  t.head_dim = head_dim;
  t.position = position;
  t.scale = 0.1f;
  t.types = {type, type};
  t.keys = keys.data();
  t.values = values.data();
  t.page_stride = stride;
  t.pages = table.data();
  t.chunk_end = 1;
  t.out = out.data();
  t.scratch = scratch.data();
  k.attend(t); // rows that share a widened page
  auto all = out;
  t.tokens = 1;
  k.attend(t); // rows that read the page
  all.insert(all.end(), out.begin(), out.end());
  return all;
}

std::vector<float> results_of(const vector_kernels& k) {
  std::vector<float> out;
  for (const kv_type type : kv_types_all) {
    const auto mixed = attention_of(k, type);
    out.insert(out.end(), mixed.begin(), mixed.end());
  }
  auto x = random_floats(3, width);
  const auto y = random_floats(4, width);
  k.add(x.data(), y.data(), width);
  k.rms_norm(x.data(), y.data(), x.data(), width, 1e-6f);
  k.silu_multiply(x.data(), y.data(), width);
  k.rotate(x.data(), y.data(), y.data() + 1, width - 1, false);
  k.rotate(x.data(), y.data(), y.data() + 1, width - 1, true);
  out.insert(out.end(), x.begin(), x.end());
  return out;
}

} // namespace

bool vector_self_test(isa target) {
  const auto expected = results_of(plain_vector_kernels), got = results_of(vector_kernels_for(target));
  for (std::size_t i = 0; i < got.size(); ++i)
    if (!(std::fabs(got[i] - expected[i]) <= 1e-4f)) // values of about 1, a few roundings apart
      return false;
  return true;
}

} // namespace troupe::cpu
