#include "cpu/kv_compaction.hpp"

#include <string>

#include "cpu/float_buffer.hpp"
#include "cpu/rotation.hpp"

namespace troupe::cpu {

namespace {

constexpr int page_tokens = limits::page_tokens;

} // namespace

result<void> check_compaction(const kv_compaction& c, std::uint32_t pages) {
  if (!c.from || !c.to || c.kept.empty())
    return fail(errc::invalid_argument, "a compaction that keeps nothing or names no pages");
  const auto held = static_cast<std::int64_t>(c.from->size()) * page_tokens;
  std::int32_t last = -1;
  for (const auto position : c.kept) {
    if (position <= last || position >= held)
      return fail(errc::invalid_argument, "a compaction keeps position " + std::to_string(position) + " behind " +
                                              std::to_string(last) + " of " + std::to_string(held));
    last = position;
  }
  if (c.kept.size() > c.to->size() * page_tokens)
    return fail(errc::invalid_argument, "a compaction has no page for all that it keeps");
  for (const auto* table : {c.from.get(), c.to.get()})
    for (const auto page : *table)
      if (page >= pages)
        return fail(errc::invalid_argument, "page " + std::to_string(page) + " is not in the pool");
  return {};
}

void compact(const kv_compaction& c, const hyperparameters& shape, const rope_table& rope, const vector_kernels& kernels,
             const kv_store& kv, thread_team& team) {
  const auto count = static_cast<int>(c.kept.size());
  const auto dim = static_cast<std::size_t>(shape.head_dim);
  const auto of = [dim](const float_buffer& buffer, int row) { return buffer.data() + static_cast<std::size_t>(row) * dim; };
  float_buffer cosine(c.kept.size() * dim), sine(c.kept.size() * dim);
  for (int i = 0; i < count; ++i)
    fill_rotation(rope, 1.0f, shape.rope.adjacent_pairs, i - c.kept[static_cast<std::size_t>(i)], of(cosine, i), of(sine, i));
  std::vector<float_buffer> rooms(static_cast<std::size_t>(team.size())); // keys, then values
  for (auto& room : rooms)
    room = float_buffer(2 * c.kept.size() * dim);

  const auto place = [&](const page_table& table, int position) {
    return table[static_cast<std::size_t>(position / page_tokens)] * kv.page_bytes();
  };
  const auto& keys = kernels.rows_of(kv.types().keys);
  const auto& values = kernels.rows_of(kv.types().values);
  team.run([&](int thread) {
    const float_buffer& room = rooms[static_cast<std::size_t>(thread)];
    team.share(shape.layers * shape.kv_heads, [&](int unit) {
      std::byte* key_base = kv.keys(unit / shape.kv_heads, unit % shape.kv_heads);
      std::byte* value_base = kv.values(unit / shape.kv_heads, unit % shape.kv_heads);
      for (int i = 0; i < count; ++i) {
        const int old = c.kept[static_cast<std::size_t>(i)];
        const auto from = place(*c.from, old);
        keys.load(key_base + from, old % page_tokens, of(room, i), shape.head_dim);
        if (i != old)
          kernels.rotate(of(room, i), of(cosine, i), of(sine, i), shape.head_dim, shape.rope.adjacent_pairs);
        values.load(value_base + from, old % page_tokens, of(room, count + i), shape.head_dim);
      }
      for (int i = 0; i < count; ++i) {
        const auto to = place(*c.to, i);
        keys.store(key_base + to, i % page_tokens, of(room, i), shape.head_dim);
        values.store(value_base + to, i % page_tokens, of(room, count + i), shape.head_dim);
      }
    });
  });
}

} // namespace troupe::cpu
