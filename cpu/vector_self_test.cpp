#include <cmath>
#include <vector>

#include "base/random.hpp"
#include "cpu/vector_kernels.hpp"

namespace troupe::cpu {
namespace {

// Odd on purpose: no length but the head's is a whole register, and the queries cross a block of positions.
constexpr int width = 53, head_dim = 80, group = 3, tokens = 5, position = 61;
constexpr int pages = (position + tokens + limits::page_tokens - 1) / limits::page_tokens;

std::vector<float> random_floats(std::uint64_t key, std::size_t count) {
  std::vector<float> out(count);
  for (std::size_t i = 0; i < count; ++i)
    out[i] = static_cast<float>(uniform_at(key, i) * 4 - 2);
  return out;
}

std::vector<float> attention_of(const vector_kernels& k) {
  constexpr std::size_t stride = static_cast<std::size_t>(limits::page_tokens) * padded(head_dim);
  const auto q = random_floats(1, static_cast<std::size_t>(tokens) * group * head_dim);
  std::vector<std::uint16_t> keys(pages * stride), values(pages * stride);
  const auto numbers = random_floats(2, pages * stride);
  for (std::size_t at = 0; at < numbers.size(); at += padded(head_dim)) {
    k.store_half(keys.data() + at, numbers.data() + at, head_dim);
    k.store_half(values.data() + at, numbers.data() + numbers.size() - at - padded(head_dim), head_dim);
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
  t.keys = keys.data();
  t.values = values.data();
  t.page_stride = stride;
  t.pages = table.data();
  t.chunk_end = 1;
  t.out = out.data();
  t.scratch = scratch.data();
  k.attend(t);
  return out;
}

std::vector<float> results_of(const vector_kernels& k) {
  auto out = attention_of(k);
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
