// How each weight type lies in a packed tile.
//
// A tile holds `lanes` neighbouring rows (8 on avx2, 16 else) and all their columns, in the order in which a kernel reads them,
// so that one lane is one output and nothing is summed across lanes. L = lanes below.
//
//   f32, f16   per column: L values
//   bf16       per two columns: L pairs {column, column + 1}; an odd count is padded with zero
//   others     per 32 columns: bytes in vectors of L x 4 columns, then that block's scales
//     4-bit    4 vectors; vector v holds columns 4v..4v+3 in the low and 16+4v..16+4v+3 in the high nibbles
//     8-bit    8 vectors; vector v holds columns 4v..4v+3; 5- and 6-bit types take a byte a weight too
//
// Scales: `half` L halves d. `half_min` L halves d, L halves m. `k_min` L bytes sc, L bytes m, and before every 8 blocks
// L halves d, L halves dmin. `k_signed` L signed bytes for columns 0..15, L for 16..31, and before every 8 blocks L halves d.
//
// A weight is (byte - offset) * scale + minimum. Nothing is rounded in packing: a tile holds what the file holds.
//
// Included by units that are compiled for different instruction sets: constants only, no functions.
#pragma once
#include "model/weights.hpp"

namespace troupe::cpu {

enum class scale_form { none, half, half_min, k_min, k_signed };

inline constexpr int block_columns = 32;
inline constexpr int super_blocks = 8; // blocks that share a K type's half-precision scales
inline constexpr int weight_types = 11;

template <weight_type T>
struct form;

struct plain_form {
  static constexpr bool quantised = false;
  static constexpr scale_form scales = scale_form::none;
};

template <int Bits, bool Nibbles, int Offset, scale_form Scales>
struct block_form {
  static constexpr bool quantised = true;
  static constexpr int bits = Bits; // a byte's value is below 1 << bits, or signed where bits is 8
  static constexpr bool nibbles = Nibbles;
  static constexpr int offset = Offset;
  static constexpr scale_form scales = Scales;
  static constexpr int lane_bytes = Nibbles ? 16 : 32; // a lane's weights of a block
  static constexpr int scale_bytes = Scales == scale_form::half_min ? 4 : 2;
  static constexpr int super_bytes = Scales == scale_form::k_min ? 4 : Scales == scale_form::k_signed ? 2 : 0;
};

template <>
struct form<weight_type::f32> : plain_form {};
template <>
struct form<weight_type::f16> : plain_form {};
template <>
struct form<weight_type::bf16> : plain_form {};
template <>
struct form<weight_type::q8_0> : block_form<8, false, 0, scale_form::half> {};
template <>
struct form<weight_type::q4_0> : block_form<4, true, 8, scale_form::half> {};
template <>
struct form<weight_type::q4_1> : block_form<4, true, 0, scale_form::half_min> {};
template <>
struct form<weight_type::q5_0> : block_form<5, false, 16, scale_form::half> {};
template <>
struct form<weight_type::q5_1> : block_form<5, false, 0, scale_form::half_min> {};
template <>
struct form<weight_type::q4_k> : block_form<4, true, 0, scale_form::k_min> {};
template <>
struct form<weight_type::q5_k> : block_form<5, false, 0, scale_form::k_min> {};
template <>
struct form<weight_type::q6_k> : block_form<6, false, 32, scale_form::k_signed> {};

} // namespace troupe::cpu
