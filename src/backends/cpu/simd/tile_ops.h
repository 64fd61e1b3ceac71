// The instructions of elementwise programs: each is one loop over a tile of f32 elements.
//
// Truth values are 0 and 1. An operand is either as long as the tile or one element that stands for all of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace autograph::simd {

/// What an instruction computes from operands a, b, c and parameters p, q. The order is that of tile_functions().
enum class TileOp : uint8_t {
  // One operand.
  copy,
  neg,
  abs,
  sign,
  reciprocal,
  sqrt,
  square,
  cube,
  sqrt_of_pow,  ///< a ^ 0.5 as pow has it: infinite at -inf.
  exp,
  log,
  erf,
  floor,
  ceil,
  round,
  relu,
  leaky_relu,        ///< Slope p.
  elu,               ///< a < 0 ? p (e^a - 1) : a.
  selu,              ///< q (a <= 0 ? p (e^a - 1) : a).
  celu,              ///< a < 0 ? p (e^(a / p) - 1) : a.
  thresholded_relu,  ///< a > p ? a : 0.
  hard_sigmoid,      ///< p a + q between 0 and 1.
  hard_swish,
  sigmoid,
  tanh,
  softplus,
  softsign,
  mish,
  swish,  ///< a sigmoid(p a).
  gelu,
  gelu_tanh,
  scale,       ///< p a.
  dequantize,  ///< (a - p) q.
  quantize,    ///< round(a / p) + q.
  not_zero,    ///< a != 0.
  logical_not,
  is_nan,
  // Two operands.
  add,
  sub,
  mul,
  div,
  max,
  min,
  pow,
  prelu,   ///< a < 0 ? a b : a.
  swiglu,  ///< a sigmoid(p a) b.
  equal,
  less,
  less_or_equal,
  logical_and,
  logical_or,
  logical_xor,
  // Three operands.
  where,  ///< a ? b : c.
};

constexpr size_t kTileOpCount = static_cast<size_t>(TileOp::where) + 1;

/// An operand: `step` is 1, or 0 for one element that stands for all.
struct TileOperand {
  const float* data = nullptr;
  int64_t step = 1;
};

/// One instruction on one tile; `y` may be one of the operands.
struct TileCall {
  std::array<TileOperand, 3> operands;
  float p = 0;
  float q = 0;
  float* y = nullptr;
  int64_t count = 0;
};

using TileFunction = void (*)(const TileCall&);

/// The loops by TileOp, for the best instruction set of this CPU.
const std::array<TileFunction, kTileOpCount>& tile_functions();

/// Elements of bool or 8-bit tensors as f32.
void widen_bytes(const uint8_t* from, float* to, int64_t count);

/// Elements of i8 tensors as f32.
void widen_signed_bytes(const int8_t* from, float* to, int64_t count);

/// Whole numbers as u8, those beyond its range and NaN as its ends.
void narrow_to_bytes(const float* from, uint8_t* to, int64_t count);

/// The same for i8.
void narrow_to_signed_bytes(const float* from, int8_t* to, int64_t count);

/// f32 to bool: anything but 0 is true.
void narrow_to_bool(const float* from, uint8_t* to, int64_t count);

}  // namespace autograph::simd
