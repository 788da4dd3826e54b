#include "cpu/pack_tile.hpp"

#include <cstring>

#include "cpu/matmul_forms.hpp"

namespace troupe::cpu {
namespace {

std::uint8_t at(const std::byte* p, int i) noexcept {
  return static_cast<std::uint8_t>(p[i]);
}

// One block of 32 weights of one row, out of the file's block (Q8_0, Q4_*, Q5_*) or of the `part`-th eighth of it (K types).
// `bytes`: 16 nibble pairs or 32 bytes, in the tile's order. `scales`: what scale_form puts behind them, at most two items.
struct one_block {
  std::byte bytes[32];
  std::byte scales[4];
};

// The six bits of scale and minimum `part` of a Q4_K or Q5_K block.
void k_scales(const std::byte* packed, int part, one_block& out) noexcept {
  int scale, minimum;
  if (part < 4) {
    scale = at(packed, part) & 63;
    minimum = at(packed, part + 4) & 63;
  } else {
    scale = (at(packed, part + 4) & 15) | (at(packed, part - 4) >> 6 << 4);
    minimum = (at(packed, part + 4) >> 4) | (at(packed, part) >> 6 << 4);
  }
  out.scales[0] = static_cast<std::byte>(scale);
  out.scales[1] = static_cast<std::byte>(minimum);
}

void five_bits(const std::byte* high, const std::byte* nibbles, one_block& out) noexcept {
  std::uint32_t fifth;
  std::memcpy(&fifth, high, 4);
  for (int j = 0; j < 16; ++j) {
    out.bytes[j] = static_cast<std::byte>((at(nibbles, j) & 15) | ((fifth >> j & 1) << 4));
    out.bytes[j + 16] = static_cast<std::byte>((at(nibbles, j) >> 4) | ((fifth >> (j + 16) & 1) << 4));
  }
}

template <weight_type Type>
void read_block(const std::byte* block, int part, bool biased, one_block& out) noexcept {
  if constexpr (Type == weight_type::q8_0) {
    std::memcpy(out.scales, block, 2);
    for (int j = 0; j < 32; ++j)
      out.bytes[j] = block[2 + j] ^ static_cast<std::byte>(biased ? 0x80 : 0);
  } else if constexpr (Type == weight_type::q4_0) {
    std::memcpy(out.scales, block, 2);
    std::memcpy(out.bytes, block + 2, 16);
  } else if constexpr (Type == weight_type::q4_1) {
    std::memcpy(out.scales, block, 4);
    std::memcpy(out.bytes, block + 4, 16);
  } else if constexpr (Type == weight_type::q5_0) {
    std::memcpy(out.scales, block, 2);
    five_bits(block + 2, block + 6, out);
  } else if constexpr (Type == weight_type::q5_1) {
    std::memcpy(out.scales, block, 4);
    five_bits(block + 4, block + 8, out);
  } else if constexpr (Type == weight_type::q4_k) {
    k_scales(block + 4, part, out);
    const std::byte* q = block + 16 + part / 2 * 32;
    const int shift = part % 2 * 4;
    for (int j = 0; j < 16; ++j)
      out.bytes[j] = static_cast<std::byte>((at(q, j) >> shift & 15) | ((at(q, j + 16) >> shift & 15) << 4));
  } else if constexpr (Type == weight_type::q5_k) {
    k_scales(block + 4, part, out);
    const std::byte* high = block + 16;
    const std::byte* q = block + 48 + part / 2 * 32;
    const int shift = part % 2 * 4;
    for (int j = 0; j < 32; ++j)
      out.bytes[j] = static_cast<std::byte>((at(q, j) >> shift & 15) | ((at(high, j) >> part & 1) << 4));
  } else {
    static_assert(Type == weight_type::q6_k);
    // Each half of 128 weights: 64 bytes of low nibbles, 32 of high pairs; its quarter k is columns 32k..32k+31.
    const int half = part / 4, quarter = part % 4;
    const std::byte* low = block + half * 64 + quarter % 2 * 32;
    const std::byte* high = block + 128 + half * 32;
    for (int j = 0; j < 32; ++j)
      out.bytes[j] = static_cast<std::byte>((at(low, j) >> (quarter / 2 * 4) & 15) | ((at(high, j) >> (2 * quarter) & 3) << 4));
    std::memcpy(out.scales, block + 192 + part * 2, 2);
  }
}

template <weight_type Type>
constexpr std::size_t block_tile_bytes(std::int64_t columns, int lanes) noexcept {
  using f = form<Type>;
  const auto blocks = static_cast<std::size_t>(columns / block_columns);
  const auto L = static_cast<std::size_t>(lanes);
  return blocks * L * (f::lane_bytes + f::scale_bytes) + blocks / super_blocks * L * f::super_bytes;
}

template <weight_type Type>
void pack_blocks(const tensor_view& weights, std::int64_t first_row, tile_shape shape, std::byte* tile) noexcept {
  using f = form<Type>;
  const int L = shape.lanes;
  const int parts = f::super_bytes ? super_blocks : 1; // of a file's block
  const int file_bytes = info_of(Type).block_bytes;
  const std::int64_t file_blocks = weights.columns / (block_columns * parts);
  // Padding rows of a biased tile hold the bytes of zero weights too: their outputs are never stored, so any bytes would do.
  for (int lane = 0; lane < L && first_row + lane < weights.rows; ++lane) {
    const std::byte* source = weights.row(first_row + lane);
    std::byte* to = tile;
    for (std::int64_t b = 0; b < file_blocks; ++b, source += file_bytes) {
      if constexpr (f::scales == scale_form::k_min) {
        std::memcpy(to + 2 * lane, source, 2);
        std::memcpy(to + 2 * L + 2 * lane, source + 2, 2);
      } else if constexpr (f::scales == scale_form::k_signed) {
        std::memcpy(to + 2 * lane, source + 208, 2);
      }
      to += L * f::super_bytes;
      for (int part = 0; part < parts; ++part) {
        one_block block;
        read_block<Type>(source, part, shape.biased_bytes, block);
        for (int v = 0; v < f::lane_bytes / 4; ++v)
          std::memcpy(to + v * L * 4 + lane * 4, block.bytes + v * 4, 4);
        to += L * f::lane_bytes;
        // One or two items: 2-byte halves, or single bytes.
        constexpr int item = f::scales == scale_form::half || f::scales == scale_form::half_min ? 2 : 1;
        for (int i = 0; i * item < f::scale_bytes; ++i)
          std::memcpy(to + (i * L + lane) * item, block.scales + i * item, item);
        to += L * f::scale_bytes;
      }
    }
  }
}

// Values of Bytes each; `together` neighbouring columns of a lane stay side by side.
template <int Bytes, int Together>
void pack_plain(const tensor_view& weights, std::int64_t first_row, int lanes, std::byte* tile) noexcept {
  for (int lane = 0; lane < lanes && first_row + lane < weights.rows; ++lane) {
    const std::byte* source = weights.row(first_row + lane);
    std::byte* to = tile + lane * Bytes * Together;
    std::int64_t c = 0;
    for (; c + Together <= weights.columns; c += Together, to += lanes * Bytes * Together)
      std::memcpy(to, source + c * Bytes, Bytes * Together);
    if (c < weights.columns)
      std::memcpy(to, source + c * Bytes, static_cast<std::size_t>(weights.columns - c) * Bytes);
  }
}

} // namespace

std::size_t packed_tile_bytes(weight_type type, std::int64_t columns, tile_shape shape) noexcept {
  const int lanes = shape.lanes;
  const auto values = static_cast<std::size_t>(columns) * static_cast<std::size_t>(lanes);
  switch (type) {
  case weight_type::f32: return values * 4;
  case weight_type::f16: return values * 2;
  case weight_type::bf16: return static_cast<std::size_t>((columns + 1) / 2) * static_cast<std::size_t>(lanes) * 4;
  case weight_type::q8_0: return block_tile_bytes<weight_type::q8_0>(columns, lanes);
  case weight_type::q4_0: return block_tile_bytes<weight_type::q4_0>(columns, lanes);
  case weight_type::q4_1: return block_tile_bytes<weight_type::q4_1>(columns, lanes);
  case weight_type::q5_0: return block_tile_bytes<weight_type::q5_0>(columns, lanes);
  case weight_type::q5_1: return block_tile_bytes<weight_type::q5_1>(columns, lanes);
  case weight_type::q4_k: return block_tile_bytes<weight_type::q4_k>(columns, lanes);
  case weight_type::q5_k: return block_tile_bytes<weight_type::q5_k>(columns, lanes);
  case weight_type::q6_k: return block_tile_bytes<weight_type::q6_k>(columns, lanes);
  }
  return 0;
}

void pack_tile(const tensor_view& weights, std::int64_t first_row, tile_shape shape, std::byte* tile) noexcept {
  switch (weights.type) {
  case weight_type::f32: return pack_plain<4, 1>(weights, first_row, shape.lanes, tile);
  case weight_type::f16: return pack_plain<2, 1>(weights, first_row, shape.lanes, tile);
  case weight_type::bf16: return pack_plain<2, 2>(weights, first_row, shape.lanes, tile);
  case weight_type::q8_0: return pack_blocks<weight_type::q8_0>(weights, first_row, shape, tile);
  case weight_type::q4_0: return pack_blocks<weight_type::q4_0>(weights, first_row, shape, tile);
  case weight_type::q4_1: return pack_blocks<weight_type::q4_1>(weights, first_row, shape, tile);
  case weight_type::q5_0: return pack_blocks<weight_type::q5_0>(weights, first_row, shape, tile);
  case weight_type::q5_1: return pack_blocks<weight_type::q5_1>(weights, first_row, shape, tile);
  case weight_type::q4_k: return pack_blocks<weight_type::q4_k>(weights, first_row, shape, tile);
  case weight_type::q5_k: return pack_blocks<weight_type::q5_k>(weights, first_row, shape, tile);
  case weight_type::q6_k: return pack_blocks<weight_type::q6_k>(weights, first_row, shape, tile);
  }
}

} // namespace troupe::cpu
